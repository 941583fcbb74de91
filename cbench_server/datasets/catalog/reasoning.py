"""Reasoning: the tasks of BIG-Bench that models found hard."""

from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.protocol import Aggregation, DatasetProtocol, use
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_TASKS = (
    "boolean_expressions",
    "causal_judgement",
    "date_understanding",
    "disambiguation_qa",
    "dyck_languages",
    "formal_fallacies",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "sports_understanding",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
    "web_of_lies",
    "word_sorting",
)


def _bbh(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["input"],
        "answer": row["target"],
    }


BBH = hub_dataset(
    "bbh",
    {
        task: (
            Part(repository="SaylorTwift/bbh", config=task, also=(f"lukaemon/bbh/{task}/test",)),
        )
        for task in _TASKS
    },
    each(_bbh),
    default_config="boolean_expressions",
    description="27 tasks of BIG-Bench Hard, one per config.",
    family="reasoning",
    protocol=DatasetProtocol(
        follows="suzgunmirac/BIG-Bench-Hard",
        shown=("context",),
        extraction="What follows the first 'the answer is' on its line, else the whole response.",
        evaluators=use("bbh"),
        primary_score="bbh_exact_match",
        aggregate=Aggregation(configs="macro"),
    ),
    size=250,
    licence="MIT",
    citation="Suzgun et al. 2022, arXiv:2210.09261",
)

RECORDS = (BBH,)
