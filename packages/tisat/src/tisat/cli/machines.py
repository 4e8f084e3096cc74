"""Many machines at the command line: which series the arguments mean, work on each of them, and what needs attention first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tisat.cli.options import How
from tisat.cli.output import print_table
from tisat.errors import DataFileError, InputError
from tisat.utils.types import JsonDict, JsonMap, Params

if TYPE_CHECKING:
    from tisat.batch import Machine
    from tisat.batch.engines import Job
    from tisat.series import Series

EngineName = Annotated[
    str, typer.Option("--engine", help="Many machines on: local (processes), inline (this process) or ray (a cluster).")
]
Address = Annotated[str | None, typer.Option(help="The Ray cluster; one on this machine where not given.")]
Jobs = Annotated[int, typer.Option(help="Processes that work side by side; 0: one for each core.", min=0)]
FleetBudget = Annotated[
    str | None, typer.Option("--fleet-budget", help="False alarms you accept from all machines together: 1/day.")
]
SUFFIX = ".tisat"


def read_machines(paths: Sequence[str | Path], how: How, *, jobs: int = 1) -> dict[str, Series]:
    """Every series that files, folders, patterns and long tables mean, by the name of its machine; read side by side where asked for."""
    from tisat.datasets.user_files import files_of, read_series

    if jobs == 1:
        read = [(path, read_series(path, **how)) for path in paths]
    else:
        files = [file for path in paths for file in files_of(path)]
        read = list(zip(files, each(_read_one, [(file, how) for file in files], jobs=jobs), strict=True))
    machines: dict[str, Series] = {}
    for path, series in read:
        for name, one in series.items():
            if name in machines:
                raise DataFileError(f"Each machine must be named once. Got {name!r} again in {str(path)!r}.")
            machines[name] = one
    return machines


def read_machine(file: str, how: How, *, verb: str) -> Series:
    """Read the one series of a file; a file of several machines is refused."""
    machines = read_machines([file], how)
    if len(machines) != 1:
        raise InputError(f"tisat {verb} must be given the file of one machine. Got {len(machines)} in {file!r}.")
    return next(iter(machines.values()))


def same_machine(paths: Sequence[str | Path], series: Sequence[Series]) -> Series | None:
    """The whole of the files of one machine, each of a stretch of time after the other; None where they are not."""
    from tisat.batch.consecutive import join_consecutive
    from tisat.datasets.user_files import files_of
    from tisat.io.files import stem_of

    stems = {stem_of(file) for path in paths for file in files_of(path)}
    return join_consecutive(series) if stems >= {one.name for one in series} else None


def _read_one(file: Path, how: How) -> dict[str, Series]:
    from tisat.datasets.user_files import read_series

    return read_series(file, **how)


def budget_of(budget: str | None, fleet_budget: str | None, machines: int) -> str | None:
    """The budget of one machine, where that of the whole fleet may have been given."""
    if fleet_budget is None:
        return budget
    if budget is not None:
        raise InputError(
            "--budget is for each machine and --fleet-budget for all of them together: give one of the two."
        )
    if " over " in fleet_budget:
        raise InputError(
            f"--fleet-budget must be the rate of all machines together, such as 1/day: they are counted. Got {fleet_budget!r} instead."
        )
    from tisat.alarms.budget import Budget
    from tisat.errors import ParameterError

    try:
        Budget.check(fleet_budget)
    except ParameterError as error:
        raise InputError(f"--fleet-budget {error.predicate}") from None
    return f"{fleet_budget} over {machines} machines"


def fleet_words(budget: str, machines: int, *, share: str = "") -> str:
    """Explain a budget for each of several machines and for all of them together.

    ``share`` is what to type to share it among them; ``--fleet-budget`` unless given.

    Examples
    --------
    >>> fleet_words("1/day over 50 machines", 50)
    'Budget 1/day over 50 machines: each machine gets one false alarm in 50 d on average.'
    >>> fleet_words("1/day", 50)[:83]
    'Budget 1/day is for each machine: 50 machines together may raise one in 28.8 min on'
    """
    from tisat.alarms.budget import Budget
    from tisat.errors import ParameterError
    from tisat.io.durations import spelt

    try:
        rows = Budget.parse(budget).time_steps
        per_machine, together = f"{rows:,.0f} rows", f"{rows / machines:,.0f} rows"
    except ParameterError:  # it speaks of time
        seconds = Budget.parse(budget, period=1.0).time_steps
        per_machine, together = spelt(seconds), spelt(seconds / machines)
    if " over " in budget:
        return f"Budget {budget}: each machine gets one false alarm in {per_machine} on average."
    share = share or f"--fleet-budget {budget if ' ' not in budget else repr(budget)}"
    return (
        f"Budget {budget} is for each machine: {machines} machines together may raise one in {together} on average. "
        f"To share it among them: {share}."
    )


def reading_of(model: Path) -> Params:
    """How files are read, as the model remembers it; of a folder of models, the first."""
    from tisat.watch import Watch

    file = model
    if model.is_dir():
        models = sorted(model.glob(f"*{SUFFIX}"))
        if not models:
            raise DataFileError(
                f"The folder {str(model)!r} must hold models, as tisat fit --each writes them. There are none."
            )
        file = models[0]
    return dict(Watch.load(file).reading)


def each(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], *, jobs: int) -> list[Any]:
    """The results of ``work`` on each task, in order; in several processes where asked for."""
    listed = list(tasks)
    count = min(os.cpu_count() or 1 if jobs == 0 else jobs, len(listed))
    if count <= 1:
        return [work(*task) for task in listed]
    with ProcessPoolExecutor(count) as pool:
        return list(pool.map(work, *zip(*listed, strict=True), chunksize=max(1, len(listed) // (8 * count))))


@dataclass(frozen=True)
class Where:
    """On what many machines are worked on."""

    jobs: Jobs = 1
    engine: EngineName = "local"
    address: Address = None

    def each(self, job: Job[Machine, Any], machines: Sequence[Machine]) -> Iterator[Any]:
        """The results of a job on each machine as they come, with a line of progress on a terminal."""
        from tisat.batch.engines import ignore, make_engine
        from tisat.utils.progress import progress

        runner = make_engine(self.engine, jobs=self.jobs or os.cpu_count() or 1, address=self.address)
        with progress("machines", total=len(machines)) as bar:
            for result in runner.each(job, machines, started=ignore):
                bar.advance()
                yield result

    def rows(self, job: Job[Machine, JsonDict], machines: Sequence[Machine]) -> list[JsonDict]:
        """The same of a job that gives rows, by the names of the machines."""
        return sorted(self.each(job, machines), key=lambda row: str(row["machine"]))


def refuse_failed(rows: Sequence[JsonMap], what: str, note: str = "") -> None:
    """List the machines that failed and end with exit code 1, if there are any."""
    failed = [[row["machine"], row["trouble"]] for row in rows if row["trouble"]]
    if failed:
        print_table(f"could not be {what}", ["machine", "why"], failed)
        if note:
            typer.echo(note, err=True)
        raise typer.Exit(1)
