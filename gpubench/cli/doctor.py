"""The doctor command: collects what is known, has the worker try the device, shows what will spoil a measurement."""

from __future__ import annotations

from gpubench.cli import options
from gpubench.cli.stored import begin


@options.reading
def doctor(
    flags: options.Flags,
    device: options.Device = None,
    json: options.JsonOnly = False,
) -> None:
    """What will spoil a measurement here, and the fix."""
    import os
    from pathlib import Path

    from gpubench import environment, surroundings
    from gpubench.doctor import Patient, diagnose
    from gpubench.errors import DeviceLost
    from gpubench.executor import Bench, WorkerProcess
    from gpubench.report import doctor as report
    from gpubench.report.words import plain
    from gpubench.store.folder import default_folder

    settings, screen = begin(**flags, device=device)
    around = surroundings.look(Path(settings.results or default_folder()))
    screen.say("trying the device; this takes some seconds")
    worker = WorkerProcess(settings.device, Bench({}, {}), settings.timeout, echo=settings.debug)
    lost = None
    calibration, examined = {}, {}
    try:
        calibration, examined = worker.calibrate(), worker.examine()
    except DeviceLost as error:
        lost = error.message
    finally:
        worker.close()
    hello = worker.hello
    patient = Patient(
        device=hello.facts,
        software=hello.software,
        notice=hello.notice,
        calibration=calibration,
        examined=examined,
        lost=lost,
        host=environment.host(),
        surroundings=around,
        variables=environment.watched_variables(os.environ),
    )
    findings, name = diagnose(patient), plain(hello.facts.get("name") or "device")
    if json:
        from gpubench.store.jsonfile import dumps

        screen.document(dumps(report.to_json(findings, name), indent=1))
    else:
        screen.show(report.table(findings))
        screen.write(f"\n{report.verdict(findings, name)}")
