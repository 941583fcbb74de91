"""What this daemon holds of what a run needs: attachments, components and credentials."""

from collections.abc import Callable, Iterator

from cbench_server.errors import CbenchError, SystemUnreachable
from cbench_server.registry import Registry
from cbench_server.rpc.attached import find_attached
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.credentials import Credentials
from cbench_server.runs.resolution import resolve_datasets
from cbench_server.runs.resolved_dataset import Uploads
from cbench_server.spec import Run, SystemRef


class Holdings:
    """Tells what a run needs and is not here. What is served elsewhere is only waited for."""

    def __init__(
        self,
        registry: Registry,
        attachments: Attachments,
        credentials: Credentials,
        uploads: Uploads,
    ) -> None:
        self._registry = registry
        self._attachments = attachments
        self._credentials = credentials
        self._uploads = uploads

    def missing(self, run: Run) -> list[str]:
        """Name what is missing, in words that say what to do about it."""
        # A rescored run calls no systems.
        parts = () if run.parent_run_id else self._of_systems(run)
        return list(dict.fromkeys([*parts, *self._of_evaluators(run), *self._of_data(run)]))

    def _of_systems(self, run: Run) -> Iterator[str]:
        memory = run.spec.kind == "memory"
        for ref in run.spec.systems:
            if ref.attached:
                yield from self._attached("memory_systems" if memory else "systems", ref, run)
            elif ref.builtin:
                kind = "memory_system" if memory else "system"
                yield from self._component(kind, ref.builtin, "the system")
            if ref.credential:
                yield from self._credential(ref.credential, ref.target)
            if ref.proxy is not None:
                yield from self._credential(ref.proxy.credential, ref.proxy.base_url)
        if run.spec.reader is not None:
            yield from self._credential(run.spec.reader.credential, run.spec.reader.base_url)

    def _attached(self, kind: str, ref: SystemRef, run: Run) -> Iterator[str]:
        try:
            _, info = find_attached(self._attachments, kind, ref.attached)
        except SystemUnreachable:
            yield f'the attached system "{ref.attached}"'
            return
        began = {each["name"]: each.get("version", "") for each in run.config.get("systems", ())}
        version = began.get(ref.name or ref.attached, info.version)
        if run.completed_rows and version != info.version:
            yield f'version "{version}" of the attached system "{ref.attached}"'

    def _of_evaluators(self, run: Run) -> Iterator[str]:
        for ref in run.spec.evaluators:
            if ref.attached:
                if self._attachments.find("evaluators", ref.attached) is None:
                    yield f'the attached evaluator "{ref.attached}"'
            elif not ref.target:
                yield from self._component("evaluator", ref.name, "the evaluator")
                if credential := ref.options.get("credential"):
                    base_url = str(ref.options.get("base_url", ""))
                    yield from self._credential(str(credential), base_url)
        for metric in run.spec.metrics:
            yield from self._component("metric", metric.name, "the metric")

    def _of_data(self, run: Run) -> Iterator[str]:
        yield from _refused(
            lambda: resolve_datasets(
                run.spec,
                self._registry,
                self._uploads,
                recorded=run.config if run.parent_run_id else None,
            ),
            "data",
        )

    def _component(self, kind: str, name: str, what: str) -> Iterator[str]:
        yield from _refused(
            lambda: self._registry.get(kind, name),
            f'{what} "{name}", which an --import brings',
            is_explained=False,
        )

    def _credential(self, name: str, address: str) -> Iterator[str]:
        if name:
            yield from _refused(
                lambda: self._credentials.secret(name, address), f'the credential "{name}"'
            )


def _refused(need: Callable[[], object], what: str, *, is_explained: bool = True) -> Iterator[str]:
    try:
        need()
    except CbenchError as error:
        yield f"{what} ({str(error).rstrip('.')})" if is_explained else what
