"""Specs as run files: what any run was asked to do, however it was started."""

from collections.abc import Mapping
from typing import Any

from cbench_server.cli.run_files.plain import Remarks
from cbench_server.cli.run_files.reading import Document, keys_of, written
from cbench_server.cli.run_files.ways import out_of_place
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    ModelRef,
    PriceRef,
    RunSpec,
    SystemRef,
)


def document_of_spec(spec: RunSpec) -> tuple[Document, Remarks]:
    """Return a document that asks for the same, and remarks on what it cannot say."""
    remarks = Remarks()
    every = remarks.options(spec.options, "every system")
    for name in every.get("unset", ()):
        remarks.append(f"every system: TOML cannot say the option {name}, which was left out.")
    document: Document = {
        "kind": spec.kind,
        "options": every.get("options", {}),
        "systems": [_system(each, remarks) for each in spec.systems],
        "datasets": [_dataset(each) for each in spec.datasets],
        "evaluators": [_evaluator(each, remarks) for each in spec.evaluators],
        "metrics": [
            {"name": each.name, **remarks.options(each.options, each.name)} for each in spec.metrics
        ],
        "scoring": _scoring(spec),
        "reader": _reader(spec, remarks),
        "prompt": _prompt(spec),
        "judge": _kept(
            unqualified=spec.allow_unqualified_judges,
            labels_upload=spec.labels_upload,
            errata_upload=spec.errata_upload,
        ),
        "run": _run(spec),
        "limits": _kept(
            max_workers=spec.max_concurrency,
            timeout=spec.row_timeout,
            wait=spec.wait_timeout if spec.wait_timeout != 600 else None,
            max_failures=spec.max_failures,
            budget_usd=spec.budget_usd,
        ),
        "memory": _kept(budget=spec.query_budget, question_types=[*spec.question_types]),
    }
    document = {name: value for name, value in document.items() if value not in ({}, [])}
    return _suited(document, spec.kind, remarks), remarks


def _suited(document: Document, kind: str, remarks: Remarks) -> Document:
    """Leave out keys that runs of this kind, or systems found in that way, do not have."""
    for place, entry in enumerate(document.get("systems", [])):
        for (name,), problem in [*out_of_place(entry)]:
            del entry[name]
            remarks.append(f"systems[{place}].{name} {problem.rstrip('.')}; it was left out.")
    for path, key in [*keys_of(document)]:
        if key.only not in ("", kind):
            home: Any = document
            for part in path[:-1]:
                home = home[part]
            del home[path[-1]]
            remarks.append(f"{written(path)} is not for a {kind} run and was left out.")
    return {name: value for name, value in document.items() if value not in ({}, [])}


def _kept(**values: Any) -> dict[str, Any]:
    """Return those of the values that say something."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value not in ("", [], {})
    }


def _system(ref: SystemRef, remarks: Remarks) -> dict[str, Any]:
    whose = ref.name or ref.target or ref.builtin or "a system"
    entry: dict[str, Any] = _kept(
        name=ref.name,
        target=",".join((ref.target, *ref.replicas)),
        builtin=ref.builtin,
        attached=ref.attached,
        upload=ref.predictions,
        served_name=ref.served_name,
        credential=ref.credential,
        role=ref.role,
        swept_option=ref.swept_option,
        **remarks.options(ref.options, whose),
    )
    if ref.proxy is not None:
        entry["proxy"] = remarks.url(ref.proxy.base_url, whose)
        entry["model"] = ref.proxy.model
        entry |= _model(ref.proxy, whose, remarks)
        if ref.options:
            remarks.append(f"{whose}: options beside those of its requests were left out.")
    if ref.tls is not None:
        entry |= {"tls": True, **_kept(ca_pem=ref.tls.ca_pem, server_name=ref.tls.server_name)}
    if ref.log:
        remarks.append(
            f"{whose} was launched by a command that only the machine it was started on has; "
            "it was found then at the address below."
        )
    return entry


def _model(ref: ModelRef, whose: str, remarks: Remarks) -> dict[str, Any]:
    return _kept(
        credential=ref.credential,
        system_prompt=ref.system_prompt,
        workers=ref.max_concurrency,
        timeout=ref.timeout,
        context_window=ref.context_window,
        price=_price(ref.price),
        **remarks.options(ref.options, whose),
    )


def _price(ref: PriceRef | None) -> dict[str, float] | None:
    if ref is None:
        return None
    cached = {} if ref.cached_input_usd is None else {"cached_input_usd": ref.cached_input_usd}
    return {"input_usd": ref.input_usd, "output_usd": ref.output_usd, **cached}


def _dataset(ref: DatasetRef) -> dict[str, Any]:
    return _kept(
        name=ref.name,
        upload=ref.upload,
        config=ref.config,
        max_examples=ref.max_examples,
        shuffle=ref.shuffle,
        where=ref.where,
        split=ref.split,
        revision=ref.revision,
        skip_bad_lines=ref.skip_bad_lines,
        map=ref.mapping,
        as_transcript=ref.as_transcript,
    )


def _evaluator(ref: EvaluatorRef, remarks: Remarks) -> dict[str, Any]:
    options = _without_password(ref.options, ref.name, remarks)
    return _kept(
        name=ref.name,
        target=ref.target,
        attached=ref.attached,
        label=ref.label,
        **remarks.options(options, ref.name),
    )


def _without_password(options: Mapping[str, Any], whose: str, remarks: Remarks) -> dict[str, Any]:
    url = options.get("base_url")
    return {**options, "base_url": remarks.url(url, whose)} if isinstance(url, str) else {**options}


def _scoring(spec: RunSpec) -> dict[str, Any]:
    return _kept(
        only_evaluators=spec.replace_evaluators,
        score_field=spec.score_field,
        threshold=spec.threshold if spec.threshold != 0.7 else None,
        tokenizer=spec.tokenizer,
        text_fields=[*spec.text_fields],
        group_by=[*spec.group_by],
    )


def _reader(spec: RunSpec, remarks: Remarks) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if spec.reader is not None:
        url = remarks.url(spec.reader.base_url, "the reader")
        table = {
            "url": url,
            "model": spec.reader.model,
            **_model(spec.reader, "the reader", remarks),
        }
    return table if spec.anchors is None else {**table, "anchors": spec.anchors}


def _prompt(spec: RunSpec) -> dict[str, Any]:
    if spec.prompt is None:
        return {}
    return _kept(
        plain=spec.prompt.plain,
        template=spec.prompt.template,
        system=spec.prompt.system_prompt,
        few_shot=spec.prompt.few_shot or None,
        max_tokens=spec.prompt.max_tokens,
    )


def _run(spec: RunSpec) -> dict[str, Any]:
    return {
        **_kept(
            repeats=spec.repeats if spec.repeats != 1 else None,
            controls="matched" if spec.matched_controls else None,
            reuse=spec.reuse,
            timed_rows=spec.timed_rows,
            ask_again=spec.asked_again,
            expose_references=spec.expose_reference_fields,
            reference_fields=[*spec.reference_fields],
            labels=spec.given_labels,
        ),
        **({"seed": spec.seed} if spec.seed else {}),
    }
