"""Specs of runs, to messages and back."""

from collections.abc import Mapping
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2, example_pb2
from cbench_client.errors import Unencodable as UnencodableMessage
from cbench_client.messages import convert as wire
from cbench_server.errors import InvalidSpec, Unencodable, entry_of
from cbench_server.rpc.rows import optional
from cbench_server.rpc.times import seconds_of, set_seconds
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    MetricRef,
    ModelRef,
    PriceRef,
    PromptRef,
    RunSpec,
    SystemRef,
    TlsRef,
)

_ROLE_NUMBERS: dict[str, Any] = {
    "": bench_pb2.SYSTEM_ROLE_UNSPECIFIED,
    "control": bench_pb2.SYSTEM_ROLE_CONTROL,
    "anchor": bench_pb2.SYSTEM_ROLE_ANCHOR,
    "direct": bench_pb2.SYSTEM_ROLE_DIRECT,
}
_ROLES: dict[int, Any] = {number: role for role, number in _ROLE_NUMBERS.items()}


def spec_from_proto(message: bench_pb2.RunSpec) -> RunSpec:
    """Decode a spec, filling in what is unset."""
    return RunSpec(
        systems=tuple(_system_ref(each, place) for place, each in enumerate(message.systems)),
        datasets=tuple(_dataset_ref(dataset) for dataset in message.datasets),
        evaluators=tuple(
            evaluator_ref(evaluator, f"spec.evaluators[{place}]")
            for place, evaluator in enumerate(message.evaluators)
        ),
        metrics=tuple(
            MetricRef(metric.name, options_of(metric.options, f"spec.metrics[{place}]"))
            for place, metric in enumerate(message.metrics)
        ),
        row_timeout=_seconds(
            message, "row_timeout", 600.0 if message.kind == bench_pb2.RUN_KIND_MEMORY else 60.0
        ),
        max_concurrency=optional(message, "max_concurrency"),
        expose_reference_fields=message.expose_reference_fields,
        labels=dict(message.labels),
        kind="memory" if message.kind == bench_pb2.RUN_KIND_MEMORY else "process",
        repeats=message.repeats if message.HasField("repeats") else 1,
        max_failures=message.max_failures,
        reader=_model_ref(message.reader, "spec.reader") if message.HasField("reader") else None,
        score_field=message.score_field,
        threshold=message.threshold if message.HasField("threshold") else 0.7,
        tokenizer=message.tokenizer,
        text_fields=tuple(message.text_fields),
        seed=message.seed,
        reuse=message.reuse,
        wait_timeout=_seconds(message, "wait_timeout", 600.0),
        replace_evaluators=message.replace_evaluators,
        reference_fields=tuple(message.reference_fields),
        query_budget=optional(message, "query_budget"),
        question_types=tuple(message.question_types),
        prompt=_prompt_ref(message.prompt) if message.HasField("prompt") else None,
        budget_usd=optional(message, "budget_usd"),
        matched_controls=message.matched_controls,
        anchors=optional(message, "anchors"),
        group_by=tuple(message.group_by),
        errata_upload=message.errata_upload,
        labels_upload=message.labels_upload,
        allow_unqualified_judges=message.allow_unqualified_judges,
        timed_rows=optional(message, "timed_rows"),
        asked_again=optional(message, "asked_again"),
        options=options_of(message.options, "spec"),
    )


def options_of(options: Mapping[str, example_pb2.Value], path: str = "") -> dict[str, Any]:
    """Decode options; one that cannot be is refused by its path."""
    decoded: dict[str, Any] = {}
    for name in sorted(options):
        field = entry_of(f"{path}.options" if path else "options", name)
        try:
            decoded[name] = wire.value_from_proto(options[name], field)
        except UnencodableMessage as error:
            raise Unencodable(str(error), field=field) from error
    return decoded


def _seconds(message: Any, name: str, default: float) -> float:
    seconds = seconds_of(message, name)
    return default if seconds is None else seconds


def _prompt_ref(message: bench_pb2.Prompt) -> PromptRef:
    return PromptRef(
        template=message.template,
        system_prompt=message.system_prompt,
        few_shot=message.few_shot,
        max_tokens=optional(message, "max_tokens"),
        plain=message.plain,
    )


def _system_ref(message: bench_pb2.SystemRef, place: int) -> SystemRef:
    path = f"spec.systems[{place}]"
    if message.WhichOneof("location") is None:
        raise InvalidSpec(
            f'system "{message.name}" has no location: set target, attached, builtin, proxy or '
            "predictions.",
            field=path,
        )
    return SystemRef(
        name=message.name,
        target=message.target,
        attached=message.attached,
        builtin=message.builtin,
        proxy=_model_ref(message.proxy, f"{path}.proxy") if message.HasField("proxy") else None,
        served_name=message.served_name,
        options=options_of(message.options, path),
        tls=TlsRef(message.tls.ca_pem, message.tls.server_name)
        if message.HasField("tls")
        else None,
        credential=message.credential,
        predictions=message.predictions,
        role=_ROLES.get(message.role, ""),
        swept_option=message.swept_option,
        log=message.log,
        revision=message.revision,
        replicas=tuple(message.replicas),
    )


def _model_ref(message: bench_pb2.ModelRef, path: str) -> ModelRef:
    return ModelRef(
        base_url=message.base_url,
        model=message.model,
        credential=message.credential,
        options=options_of(message.options, path),
        system_prompt=message.system_prompt,
        price=_price_ref(message.price) if message.HasField("price") else None,
        max_concurrency=optional(message, "max_concurrency"),
        timeout=seconds_of(message, "timeout"),
        context_window=optional(message, "context_window"),
    )


def _price_ref(message: bench_pb2.Price) -> PriceRef:
    return PriceRef(message.input_usd, message.output_usd, optional(message, "cached_input_usd"))


def evaluator_ref(message: bench_pb2.EvaluatorRef, path: str) -> EvaluatorRef:
    """Decode where to find an evaluator, which the request has at this path."""
    return EvaluatorRef(
        name=message.name,
        target=message.target,
        attached=message.attached,
        options=options_of(message.options, path),
        label=message.label,
    )


def _dataset_ref(message: bench_pb2.DatasetRef) -> DatasetRef:
    return DatasetRef(
        name=message.name,
        config=message.config,
        max_examples=optional(message, "max_examples"),
        upload=message.upload,
        split=message.split,
        shuffle=message.shuffle,
        where=dict(message.where),
        skip_bad_lines=message.skip_bad_lines,
        revision=message.revision,
        mapping=dict(message.mapping),
        as_transcript=message.as_transcript,
    )


def spec_to_proto(spec: RunSpec) -> bench_pb2.RunSpec:
    """Encode a spec."""
    message = bench_pb2.RunSpec(
        max_concurrency=spec.max_concurrency,
        expose_reference_fields=spec.expose_reference_fields,
        labels=spec.labels,
        kind=bench_pb2.RUN_KIND_MEMORY if spec.kind == "memory" else bench_pb2.RUN_KIND_PROCESS,
        repeats=spec.repeats,
        max_failures=spec.max_failures,
        score_field=spec.score_field,
        threshold=spec.threshold,
        tokenizer=spec.tokenizer,
        text_fields=spec.text_fields,
        seed=spec.seed,
        reuse=spec.reuse,
        replace_evaluators=spec.replace_evaluators,
        reference_fields=spec.reference_fields,
        query_budget=spec.query_budget,
        question_types=spec.question_types,
        budget_usd=spec.budget_usd,
        matched_controls=spec.matched_controls,
        group_by=spec.group_by,
        errata_upload=spec.errata_upload,
        labels_upload=spec.labels_upload,
        allow_unqualified_judges=spec.allow_unqualified_judges,
        timed_rows=spec.timed_rows,
        asked_again=spec.asked_again,
    )
    if spec.anchors is not None:
        message.anchors = spec.anchors
    set_seconds(message.row_timeout, spec.row_timeout)
    set_seconds(message.wait_timeout, spec.wait_timeout)
    for ref in spec.systems:
        system = message.systems.add(
            name=ref.name,
            served_name=ref.served_name,
            credential=ref.credential,
            role=_ROLE_NUMBERS[ref.role],
            swept_option=ref.swept_option,
            log=ref.log,
            revision=ref.revision,
            replicas=ref.replicas,
        )
        for location in ("target", "attached", "builtin", "predictions"):
            if value := getattr(ref, location):
                setattr(system, location, value)
        if ref.proxy is not None:
            _model_to_proto(ref.proxy, system.proxy)
        if ref.tls is not None:
            system.tls.ca_pem = ref.tls.ca_pem
            system.tls.server_name = ref.tls.server_name
        wire.fields_to_proto(ref.options, system.options)
    for dataset in spec.datasets:
        message.datasets.add(
            name=dataset.name,
            config=dataset.config,
            max_examples=dataset.max_examples,
            upload=dataset.upload,
            split=dataset.split,
            shuffle=dataset.shuffle,
            where=dataset.where,
            skip_bad_lines=dataset.skip_bad_lines,
            revision=dataset.revision,
            mapping=dataset.mapping,
            as_transcript=dataset.as_transcript,
        )
    for evaluator in spec.evaluators:
        entry = message.evaluators.add(name=evaluator.name, label=evaluator.label)
        for location in ("target", "attached"):
            if value := getattr(evaluator, location):
                setattr(entry, location, value)
        wire.fields_to_proto(evaluator.options, entry.options)
    for metric in spec.metrics:
        wire.fields_to_proto(metric.options, message.metrics.add(name=metric.name).options)
    wire.fields_to_proto(spec.options, message.options)
    if spec.reader is not None:
        _model_to_proto(spec.reader, message.reader)
    if spec.prompt is not None:
        prompt = spec.prompt
        message.prompt.CopyFrom(
            bench_pb2.Prompt(
                template=prompt.template,
                system_prompt=prompt.system_prompt,
                few_shot=prompt.few_shot or None,
                max_tokens=prompt.max_tokens,
                plain=prompt.plain,
            )
        )
    return message


def _model_to_proto(ref: ModelRef, message: bench_pb2.ModelRef) -> None:
    message.base_url = ref.base_url
    message.model = ref.model
    message.credential = ref.credential
    message.system_prompt = ref.system_prompt
    if ref.price is not None:
        price = ref.price
        message.price.input_usd, message.price.output_usd = price.input_usd, price.output_usd
        if price.cached_input_usd is not None:
            message.price.cached_input_usd = price.cached_input_usd
    if ref.max_concurrency is not None:
        message.max_concurrency = ref.max_concurrency
    if ref.timeout is not None:
        set_seconds(message.timeout, ref.timeout)
    if ref.context_window is not None:
        message.context_window = ref.context_window
    wire.fields_to_proto(ref.options, message.options)
