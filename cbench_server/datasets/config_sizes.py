"""Sizes of configs: how many examples their authors publish, where that is known.

A mirror that holds fewer is told by them. A dataset's default config has its size in its record.
Counted in the authors' own repositories: LongBench and LongBench-E (task.md), InfiniteBench (the
published predictions; its page says 175 for Zh.QA, which has 189), BFCL (bfcl_eval/data),
LongMemEval and BIG-Bench Hard. The others are those of the papers; MMLU's add up to 14,042, MATH's
to 5,000.
"""

_MMLU = """
abstract_algebra 100 anatomy 135 astronomy 152 business_ethics 100 clinical_knowledge 265
college_biology 144 college_chemistry 100 college_computer_science 100 college_mathematics 100
college_medicine 173 college_physics 102 computer_security 100 conceptual_physics 235
econometrics 114 electrical_engineering 145 elementary_mathematics 378 formal_logic 126
global_facts 100 high_school_biology 310 high_school_chemistry 203
high_school_computer_science 100 high_school_european_history 165 high_school_geography 198
high_school_government_and_politics 193 high_school_macroeconomics 390
high_school_mathematics 270 high_school_microeconomics 238 high_school_physics 151
high_school_psychology 545 high_school_statistics 216 high_school_us_history 204
high_school_world_history 237 human_aging 223 human_sexuality 131 international_law 121
jurisprudence 108 logical_fallacies 163 machine_learning 112 management 103 marketing 234
medical_genetics 100 miscellaneous 783 moral_disputes 346 moral_scenarios 895 nutrition 306
philosophy 311 prehistory 324 professional_accounting 282 professional_law 1534
professional_medicine 272 professional_psychology 612 public_relations 110
security_studies 245 sociology 201 us_foreign_policy 100 virology 166 world_religions 171
"""
_MATH = """
algebra 1187 counting_and_probability 474 geometry 479 intermediate_algebra 903
number_theory 540 prealgebra 871 precalculus 546 500 500
"""
_BBH = """
boolean_expressions date_understanding disambiguation_qa dyck_languages formal_fallacies
geometric_shapes hyperbaton logical_deduction_five_objects logical_deduction_seven_objects
logical_deduction_three_objects movie_recommendation multistep_arithmetic_two navigate
object_counting reasoning_about_colored_objects ruin_names salient_translation_error_detection
sports_understanding temporal_sequences tracking_shuffled_objects_five_objects
tracking_shuffled_objects_seven_objects tracking_shuffled_objects_three_objects web_of_lies
word_sorting
"""
_LONGBENCH = """
narrativeqa qasper multifieldqa_zh hotpotqa 2wikimqa musique dureader gov_report qmsum multi_news
vcsum trec triviaqa samsum lsht passage_count passage_retrieval_en passage_retrieval_zh
"""
_LONGBENCH_E = """
qasper_e 224 multifieldqa_en_e 150 hotpotqa_e 300 2wikimqa_e 300 gov_report_e 300 multi_news_e 294
trec_e 300 triviaqa_e 300 samsum_e 300 passage_count_e 300 passage_retrieval_en_e 300 lcc_e 300
repobench-p_e 300
"""
_INFINITEBENCH = """
longbook_qa_eng 351 longbook_qa_chn 189 longbook_choice_eng 229 longbook_sum_eng 103
longdialogue_qa_eng 200 passkey 590 number_string 590 kv_retrieval 500 math_find 350
math_calc 50 code_run 400 code_debug 394
"""
_TRIVIAQA = """
rc 17944 rc.web 9951 rc.wikipedia 7993 rc.nocontext 17944 rc.web.nocontext 9951
rc.wikipedia.nocontext 7993 unfiltered 11313 unfiltered.nocontext 11313
"""
_BFCL = """
simple 400 java 100 javascript 50 multiple 200 parallel 200 parallel_multiple 200 live_simple 258
live_multiple 1053 live_parallel 16 live_parallel_multiple 24 irrelevance 240
"""


def _pairs(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True)}


CONFIG_SIZES: dict[str, dict[str, int]] = {
    "hotpotqa": {"fullwiki": 7405},
    "triviaqa": _pairs(_TRIVIAQA),
    "frames": {"oracle": 824},
    "truthfulqa": {"mc1": 817},
    "mmlu": _pairs(_MMLU),
    "gpqa": {"gpqa_main": 448, "gpqa_extended": 546},
    "winogrande": dict.fromkeys(
        (f"winogrande_{size}" for size in ("l", "m", "s", "xs", "debiased")), 1267
    ),
    "gsm8k": {"socratic": 1319},
    "mgsm": dict.fromkeys(("bn", "de", "es", "fr", "ja", "ru", "sw", "te", "th", "zh"), 250),
    "math": _pairs(_MATH),
    "mbpp": {"full": 500},
    "bbh": {
        **dict.fromkeys(_BBH.split(), 250),
        "causal_judgement": 187,
        "penguins_in_a_table": 146,
        "snarks": 178,
    },
    "alpaca-eval": {"alpaca_eval_gpt4_baseline": 805},
    "longbench": {
        **dict.fromkeys(_LONGBENCH.split(), 200),
        "multifieldqa_en": 150,
        "lcc": 500,
        "repobench-p": 500,
        **_pairs(_LONGBENCH_E),
    },
    "infinitebench": _pairs(_INFINITEBENCH),
    "bfcl": _pairs(_BFCL),
    "swebench": {"oracle": 2294, "bm25_13K": 2294},
    "swebench-lite": {"oracle": 300, "bm25_13K": 300},
    "longmemeval": dict.fromkeys(("m", "oracle", "s-2024", "m-2024", "oracle-2024"), 500),
}
