"""Our kernels of the suite attention-kernels on a GPU: right at every length, and fast beside torch's own."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import SUITES, row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.model import attention_torch  # noqa: E402
from gpubench.workload import Workload  # noqa: E402

SUITE = SUITES["attention-kernels"]
OF_THE_BEST = 0.35
"""Of the rate of torch's best back-end: mma.sync reaches some 60 % of what wgmma does."""
OVER_NAIVE = 2
"""Times faster than eager steps, which store all scores."""
ERROR = 1.5
"""The error over that of eager steps, at most."""
TORCHS = ("flash", "cudnn", "efficient")


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def good(device: Any, path: str, **params: Any) -> Any:
    """A row that must be right."""
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    return record


def made(device: Any, **params: Any) -> Workload:
    """A forward pass by our FlashAttention."""
    given = {"n": 1000, "d": 64, "mask": "none", "group": 1, "tokens": 2000, "heads": 2, "dtype": "float16"}
    return SUITE.benchmarks["ours"].function(device, **given | params)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("d", [64, 128])
def test_flash_is_right_at_any_length_and_one_kernel(device: Any, d: int, dtype: str, mask: str) -> None:
    for n in (1, 63, 1000, 1025):
        record = good(device, "attention-kernels/ours", n=n, d=d, mask=mask, dtype=dtype, tokens=2 * n, heads=3)
        assert [kernel.name for kernel in record.kernels] == ["flash_forward"]


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("by", ["naive", "tiled", "two-sweeps", "keeping", "outer-keys", "flash"])
def test_a_rung_is_right_at_any_length(device: Any, by: str, d: int) -> None:
    if (by, d) == ("keeping", 128):
        pytest.skip("scores are kept at d = 64 only")
    for n in (1, 63, 1025):
        good(
            device,
            "attention-kernels/ladder",
            by=by,
            n=n,
            d=d,
            batch=2,
            heads=3,
            dtype="bfloat16" if d == 64 else "float16",
        )


def test_query_heads_share_keys(device: Any) -> None:
    good(device, "attention-kernels/ours", n=1025, d=128, group=8, heads=16, tokens=2050)


def test_more_heads_than_a_grid_has_rows(device: Any) -> None:
    good(device, "attention-kernels/ours", n=7, d=64, heads=16, tokens=7 * 5000)


def test_more_numbers_than_32_bits_count(device: Any) -> None:
    """The last heads lie beyond 2^31 numbers: each is as a head of its own would be."""
    if torch.cuda.mem_get_info(device.torch_device)[0] < 40 << 30:
        pytest.skip("needs 40 GiB of memory")
    work = made(device, n=256, d=128, heads=16, tokens=256 * 4100)
    device.launcher(work.run, SUITE.file).call()
    q, k, v = (tensor[-1:] for tensor in work.run.args[:3])
    exact = attention_torch.exact(torch, q, k, v, False)
    assert attention_torch.error(work.output[-1:], exact) < 1e-3


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_logarithms(device: Any, mask: str) -> None:
    work = made(device, mask=mask)
    device.launcher(work.run, SUITE.file).call()
    q, k, _, _, logarithms = work.run.args[:5]
    scores = q.double() @ k.double().mT / 8
    if mask == "causal":
        scores.masked_fill_(torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1), -torch.inf)
    torch.testing.assert_close(logarithms.double().view(2, 2, 1000), scores.logsumexp(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_error_is_that_of_the_definition(device: Any, dtype: str, last: bool) -> None:
    """1.5 times that of eager steps at most, also where the greatest score comes in the last tile."""
    for n, d in ((1000, 64), (1025, 128)):
        work = made(device, n=n, d=d, dtype=dtype, tokens=n)
        q, k, v = work.run.args[:3]
        if last:
            q.add_(attention_torch.RAISED)
            k[:, :, -1].add_(attention_torch.RAISED)
        device.launcher(work.run, SUITE.file).call()
        exact = attention_torch.exact(torch, q, k, v, False)
        naive = attention_torch.by_steps(torch, "naive", q, False)(q, k, v)
        assert attention_torch.error(work.output, exact) <= ERROR * attention_torch.error(naive, exact)


@pytest.mark.parametrize("shape", ["lecture", "long"])
def test_fast_beside_torchs_own(device: Any, shape: str) -> None:
    """At the lecture's configuration, and at a long one of wide heads."""
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("thresholds are of compute capability 9.0")
    rows = {by: row(device, "attention-kernels/beside-torch", by=by, shape=shape) for by in ("ours", "naive", *TORCHS)}
    assert all(record.status in ("ok", "unsupported") for record in rows.values())
    ns = {by: record.summary.median_ns for by, record in rows.items() if record.status == "ok"}
    print({by: round(rows["ours"].work.flops / each / 1e3) for by, each in ns.items()}, "TFLOP/s")
    assert [kernel.name for kernel in rows["ours"].kernels] == ["flash_forward"]
    assert min(ns[by] for by in TORCHS if by in ns) / ns["ours"] >= OF_THE_BEST
    assert ns["naive"] / ns["ours"] >= OVER_NAIVE


@pytest.mark.parametrize("greatest", ["anywhere", "last"])
@pytest.mark.parametrize("d", [64, 128])
def test_the_rows_of_errors(device: Any, d: int, greatest: str) -> None:
    ours, naive = (
        good(device, "attention-kernels/exactness", by=by, d=d, greatest=greatest).check.error
        for by in ("ours", "naive")
    )
    assert ours <= ERROR * naive


def test_scores_are_kept_in_one_kernel_and_cost_time(device: Any) -> None:
    shape = {"n": 1024, "d": 64, "batch": 16, "heads": 16}
    kept, flash = (good(device, "attention-kernels/ladder", by=by, **shape) for by in ("keeping", "flash"))
    assert [kernel.name for kernel in kept.kernels] == ["flash_forward"]
    assert kept.summary.median_ns > 1.1 * flash.summary.median_ns


def test_each_rung_is_faster_than_the_one_before(device: Any) -> None:
    times = [
        good(device, "attention-kernels/ladder", by=by, n=1024, d=64, batch=16, heads=16).summary.median_ns
        for by in ("naive", "tiled", "two-sweeps", "flash")
    ]
    assert sorted(times, reverse=True) == times
