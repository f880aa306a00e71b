"""The catalogue: every figure follows from the others, every name leads to its own product and to no other."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpubench import yamlfile
from gpubench.model import catalog
from gpubench.model.catalog import Chip

GPUS = [chip for chip in catalog.chips() if chip.kind == "gpu"]
TPUS = [chip for chip in catalog.chips() if chip.kind == "tpu"]
ALL_UNITS = {unit for units in catalog.UNITS.values() for unit in units}

H200: dict[str, Any] = {
    "kind": "cuda",
    "name": "NVIDIA H200",
    "compute_capability": "9.0",
    "multiprocessors": 132,
    "memory_bytes": 150_109_880_320,
    "sm_mhz_max": 1980,
    "memory_mhz_max": 3201,
    "memory_bus_bits": 6016,
    "mig": False,
}


def chip(name: str) -> Chip:
    return next(chip for chip in catalog.chips() if chip.name == name)


def rate(name: str, what: str, matrix: bool = True) -> float:
    figure = chip(name).datasheet(what, matrix)
    assert figure is not None
    assert figure.source
    return figure.value


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_each_datasheet_peak_is_units_times_rate_times_rated_clock(gpu: Chip) -> None:
    assert gpu.multiprocessors
    for unit, peak in gpu.peaks.items():
        clock = gpu.clock_mhz(unit)
        if clock is None:  # the maker does not say: then no clock that silicon runs at may be needed for it
            assert 1000 < peak / (gpu.multiprocessors * gpu.rates[unit] * 1e6) < 2200, unit
        else:
            assert gpu.multiprocessors * gpu.rates[unit] * clock * 1e6 == pytest.approx(peak, rel=0.02), unit
    if gpu.memory_mhz is not None and gpu.memory_bits is not None:
        pins = {"memory_mhz_max": gpu.memory_mhz, "memory_bus_bits": gpu.memory_bits}
        bound = catalog.memory_bound(pins)
        assert bound is not None
        assert bound.value == pytest.approx(gpu.bandwidth, rel=0.01)


def test_most_peaks_are_derived_and_not_only_bounded() -> None:
    derived = [gpu.name for gpu in GPUS if all(gpu.clock_mhz(unit) for unit in gpu.peaks)]
    assert len(derived) == len(GPUS) - 6, "H100 NVL, H200 NVL, GH200 (2), B200, GB200 lack a rated clock"


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_a_product_does_all_or_half_of_what_its_architecture_can(gpu: Chip) -> None:
    architecture = catalog.architectures()[str(gpu.capability)]
    assert gpu.architecture == architecture.name
    for unit, most in architecture.rates.items():
        assert gpu.rates[unit] in ({most, most // 2} if unit in architecture.varies else {most}), unit
    assert gpu.rates.keys() == architecture.rates.keys()
    assert gpu.peaks.keys() <= ALL_UNITS
    assert gpu.sparse == (2 if float(str(gpu.capability)) >= 8 else 1)


def test_every_rate_is_a_unit_and_halves_are_said_of_known_ones() -> None:
    for architecture in catalog.architectures().values():
        assert architecture.rates.keys() <= ALL_UNITS
        assert architecture.varies <= architecture.rates.keys()


def test_facts_of_dies_are_of_the_dies() -> None:
    assert chip("A100 SXM 40 GB").multiprocessors == 108
    dies = yamlfile.load(catalog.FILE).mapping("a file")["dies"].mapping("dies")
    whole = {name: int(node.mapping("a die")["multiprocessors"].scalar("a number")) for name, node in dies.items()}
    assert whole["GA100"] == 128
    assert whole["GH100"] == 144
    assert {gpu.die for gpu in GPUS} == set(whole)
    for gpu in GPUS:
        assert gpu.multiprocessors is not None
        assert gpu.multiprocessors <= whole[str(gpu.die)]


def test_every_source_is_used_and_every_product_has_one() -> None:
    texts = yamlfile.load(catalog.FILE).mapping("a file")["sources"].mapping("sources").values()
    sources = {node.scalar("a text") for node in texts}
    used = {chip.source for chip in catalog.chips()} | {each.source for each in catalog.architectures().values()}
    assert used == sources
    assert all(re.search(r"20\d\d", source) for source in sources), "a document has a year"


def test_dense_figures_of_the_hopper_products() -> None:  # INPUTS O16
    for name in ("H100 SXM", "H200 SXM"):
        assert rate(name, "bfloat16") == pytest.approx(989e12, rel=1e-3)
        assert rate(name, "float16") == pytest.approx(989e12, rel=1e-3)
        assert rate(name, "float8_e4m3fn") == pytest.approx(1979e12, rel=1e-3)
        assert rate(name, "int8") == pytest.approx(1979e12, rel=1e-3)
        assert rate(name, "tf32") == pytest.approx(494e12, rel=2e-3)
        assert rate(name, "float32") == pytest.approx(67e12, rel=2e-3)
        assert rate(name, "float64") == pytest.approx(67e12, rel=2e-3)
        assert rate(name, "float64", matrix=False) == pytest.approx(34e12, rel=0.02)
    assert rate("H200 SXM", "DRAM") == 4.8e12
    assert rate("H100 PCIe", "bfloat16") == 756e12
    assert rate("H100 NVL", "bfloat16") == 835.5e12
    assert rate("A100 SXM 40 GB", "bfloat16") == 312e12
    assert chip("A100 SXM 40 GB").datasheet("float8_e4m3fn") is None
    assert chip("V100 SXM2").datasheet("bfloat16") is None
    assert chip("H100 SXM").datasheet("complex64") is None


def test_what_the_lecture_compares() -> None:  # CLAIMS E25, E26
    assert rate("H100 SXM", "float32") / rate("K20X", "float32") == pytest.approx(17, rel=0.01)
    with_sparsity = rate("H100 SXM", "float8_e4m3fn") * chip("H100 SXM").sparse
    assert with_sparsity / rate("K20X", "float32") == pytest.approx(1000, rel=0.01), "another unit, and sparse"
    assert chip("H100 SXM").process == "TSMC 4N"
    ridges = {name: rate(name, "bfloat16") / rate(name, "DRAM") for name in ("A100 SXM 40 GB", "H100 SXM", "H200 SXM")}
    assert {name: round(value) for name, value in ridges.items()} == {
        "A100 SXM 40 GB": 201,
        "H100 SXM": 295,
        "H200 SXM": 206,
    }
    assert rate("V100 SXM2", "float16") / rate("V100 SXM2", "DRAM") == pytest.approx(139, abs=1)
    assert rate("P100 SXM2", "float16") / rate("P100 SXM2", "DRAM") == pytest.approx(29, abs=0.5)
    assert rate("K80", "float32") / rate("K80", "DRAM") == pytest.approx(18, abs=0.5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GH200 480GB", "GH200 96 GB"),
        ("NVIDIA GH200 144G HBM3e", "GH200 144 GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("Tesla T4", "T4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA B200", "B200 SXM"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA Graphics Device", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA H200 MIG 7g.141gb", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA A10G", None),
        ("NVIDIA H20", None),
        ("NVIDIA H800", None),
        ("nvidia h200", None),
        (" NVIDIA H200", None),
        ("H200", None),
        ("TPU v4", None),
        ("", None),
        (None, None),
    ],
)
def test_a_name_leads_to_its_own_product_or_to_none(name: str | None, expected: str | None) -> None:  # INPUTS O17
    found = catalog.lookup({"kind": "cuda", "name": name})
    assert (found and found.name) == expected
    assert (catalog.absence({"kind": "cuda", "name": name}) is None) == (expected is not None)


def test_no_two_products_share_a_name() -> None:
    names = [device for gpu in GPUS for device in gpu.devices]
    assert len(names) == len(set(names))
    assert len({each.name for each in catalog.chips()}) == len(catalog.chips())


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"mig": True}, "a slice of a GPU (MIG) has no datasheet"),
        ({"multiprocessors": 114}, "this NVIDIA H200 has not the multiprocessors or the memory of that product"),
        ({"multiprocessors": 16}, "has not the multiprocessors"),
        ({"compute_capability": "8.0"}, "has not the multiprocessors"),
        ({"memory_bytes": 16 * 2**30}, "or the memory of that product"),
        ({"memory_bytes": 300 * 2**30}, "or the memory of that product"),
        ({"name": "NVIDIA Graphics Device"}, "NVIDIA Graphics Device is not in the catalogue"),
        ({"name": None}, "a GPU without a name is not in the catalogue"),
    ],
)
def test_what_is_known_of_a_device_must_fit_its_name(other: dict[str, Any], words: str) -> None:
    found = catalog.lookup(H200)
    assert found is not None
    assert found.name == "H200 SXM"
    assert catalog.lookup(H200 | other) is None
    assert words in str(catalog.absence(H200 | other))


def test_what_is_not_known_of_a_device_need_not_fit() -> None:
    bare = H200 | dict.fromkeys(("mig", "multiprocessors", "compute_capability", "memory_bytes"))
    assert catalog.lookup(bare) is catalog.lookup(H200)
    assert catalog.absence({"kind": "cpu", "name": "Example processor"}) is None


def test_both_sizes_of_a_product_are_one_product() -> None:
    facts = {"name": "Tesla V100-SXM2-32GB", "compute_capability": "7.0", "multiprocessors": 80}
    assert catalog.lookup(facts | {"memory_bytes": 34_089_730_048}) is chip("V100 SXM2")
    assert catalog.lookup(facts | {"memory_bytes": 8 * 2**30}) is None


def test_silicon_is_multiprocessors_times_rate_times_clock() -> None:
    figure = catalog.silicon(H200, "bfloat16", 1980)
    assert figure is not None
    assert figure.value == 132 * 4096 * 1980e6
    assert figure.source == "132 multiprocessors × 4096 FLOP a clock × 1980 MHz"
    slower = catalog.silicon(H200, "float32", 1470)
    assert slower is not None
    assert slower.value == 132 * 256 * 1470e6
    assert catalog.silicon(H200, "float64", 1000, matrix=False) == catalog.Figure(
        132 * 128 * 1e9, "FLOP/s", "132 multiprocessors × 128 FLOP a clock × 1000 MHz"
    )


def test_silicon_needs_no_product_but_is_not_guessed() -> None:
    unknown = {"name": "NVIDIA Graphics Device", "compute_capability": "9.0", "multiprocessors": 78}
    figure = catalog.silicon(unknown, "bfloat16", 1000)
    assert figure is not None
    assert figure.value == 78 * 4096 * 1e9
    geforce = {"name": "NVIDIA GeForce RTX 4080", "compute_capability": "8.9", "multiprocessors": 76}
    assert catalog.silicon(geforce, "bfloat16", 2505) is None, "full or half rate: only the product knows"
    assert catalog.silicon(geforce, "float32", 2505) is not None
    assert catalog.silicon(unknown | {"compute_capability": "99.0"}, "float32", 1000) is None
    assert catalog.silicon(unknown | {"compute_capability": None}, "float32", 1000) is None
    assert catalog.silicon(unknown | {"multiprocessors": None}, "float32", 1000) is None
    assert catalog.silicon(unknown, "float32", 0) is None
    assert catalog.silicon(unknown, "complex64", 1000) is None


def test_a_product_with_half_the_rate_is_held_against_half() -> None:
    facts = {"name": "NVIDIA GeForce RTX 4090", "compute_capability": "8.9", "multiprocessors": 128, "sm_mhz_max": 2520}
    half, bound = catalog.silicon(facts, "bfloat16", 2520), catalog.compute_bound(facts, "bfloat16")
    assert half is not None
    assert bound is not None
    assert half.value == pytest.approx(165.2e12, rel=1e-3)
    assert bound.value == 2 * half.value


def test_bounds_are_by_the_fastest_unit_and_the_highest_clocks() -> None:
    bound = catalog.compute_bound(H200, "float64")
    assert bound is not None
    assert bound.value == 132 * 256 * 1980e6
    memory = catalog.memory_bound(H200)
    assert memory is not None
    assert memory.value == pytest.approx(4815e9, rel=1e-3)
    for lost in ("sm_mhz_max", "multiprocessors", "compute_capability"):
        assert catalog.compute_bound(H200 | {lost: None}, "float64") is None
    assert catalog.compute_bound(H200, "complex64") is None
    for lost in ("memory_mhz_max", "memory_bus_bits"):
        assert catalog.memory_bound(H200 | {lost: None}) is None
        assert catalog.memory_bound(H200 | {lost: 0}) is None, "INPUTS O19: no clock gives no peak"


def test_rates_by_compute_capability() -> None:
    assert catalog.rates("8.0")["tensor_bf16"] == 2048
    assert catalog.rates("7.0")["tensor_fp16"] == 1024
    assert "tensor_bf16" not in catalog.rates("7.0")
    assert catalog.rates("99.9") == {}
    assert catalog.rates(None) == {}


def test_tpus_are_data_for_comparison() -> None:
    assert [tpu.name.removeprefix("TPU ") for tpu in TPUS] == ["v2", "v3", "v4i", "v4", "v5e", "v5p", "v6e"]
    assert rate("TPU v4", "bfloat16") == 275e12
    assert rate("TPU v5p", "DRAM") == 2765e9
    assert all(tpu.devices == () and tpu.capability is None for tpu in TPUS)
