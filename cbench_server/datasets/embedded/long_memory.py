"""The embedded dataset long-memory: conversations of hundreds of turns, written when they are read.

Two people talk for half a year. Nearly all of it is small talk; here and there one of
them says something that is asked for at the end: plain facts, facts that
changed later, dates, facts that need a second one, and things that were never
said. What is asked for stands long before the last turns, so that who only
remembers those knows little. The same conversations come out every time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cbench_server.datasets.generated.draws import Draws
from cbench_server.types import Example

CONVERSATIONS = 6
_SESSIONS = 32
_LATE = 3
"""The last sessions, in which only one plain fact is told."""
_NO_ANSWER = "The conversation does not say."


def _words(text: str) -> list[str]:
    return text.split()


def _texts(text: str) -> list[str]:
    return text.split("|")


_PAIRS = (
    ("Marit", "Osman"),
    ("Leonie", "Pavel"),
    ("Harun", "Greta"),
    ("Ottilie", "Kwame"),
    ("Bastian", "Yara"),
    ("Solveig", "Dmitri"),
)
_SURNAMES = _words(
    "Achterberg Brankovic Castellane Drosdow Eklund Fonseca Grimaldi Halvorsen Ibsen Jankowski "
    "Kessler Lindqvist Montclair Nakamura Ostrander Petrakis Quintero Rasmussen Steinfeld Tavares"
)
_FRIENDS = _words("Ambrose Birte Cosmo Delphine Edda Fabian Gudrun Hendrik Isolde Jorin")
_TOWNS = _words(
    "Aldersund Birkhaven Corvale Dunmoor Elstermark Fernhollow Grauwick Hollerup Ilverton "
    "Kaldvik Lindrath Morvenna Nordermoss Ostrawell Pellmouth Ravensby Skagholm Tarnmouth"
)
_COLOURS = _words("ochre turquoise vermilion lavender charcoal apricot indigo pistachio")
_FOODS = _words("celery hazelnuts shellfish apricots lentils buckwheat aubergine mustard")
_PLACES = _texts(
    "rain barrel|sundial|third flowerpot|boot scraper|beehive|watering can|bird table|stone frog"
)
_DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday")
_WORK = _texts(
    "the tram museum|the botanical garden|the county archive|the salt works|the observatory|"
    "the bookbinders' guild|the fish auction|the planetarium"
)
_CATS = _words("Pretzel Marzipan Biscotti Turnip Pumpernickel Clementine Wasabi Nutmeg")
_THINGS = _texts("ladder|accordion|tandem|telescope|loom|canoe|cement mixer|projector")
_EVENTS = _texts(
    "the kiln arrived|the chimney was swept|the piano was tuned|the gate was hung|"
    "the well was cleaned|the roof was sealed|the orchard was fenced|the stove was fitted"
)


@dataclass(frozen=True)
class _Fact:
    """What is said, in order, and what is asked about it."""

    said: tuple[str, ...]
    kind: str
    question: str
    answer: str
    previous: str = ""
    """What was true before, where it changed."""
    is_abstention: bool = False

    def asked(self) -> Example:
        """Return it as an entry of `qa_pairs`."""
        return {
            "question": self.question,
            "answer": self.answer,
            "type": self.kind,
            "is_abstention": self.is_abstention,
            **({"previous_answer": self.previous} if self.previous else {}),
        }


def _plain_facts(who: str, draws: Draws) -> list[_Fact]:
    plumber, town = draws.pick(_SURNAMES), draws.pick(_TOWNS[:9])
    colour, food, place = draws.pick(_COLOURS), draws.pick(_FOODS), draws.pick(_PLACES)
    locker = draws.digits(3)
    told = [
        (
            f"They have given me locker {locker} at the swimming hall, right at the end.",
            f"Which locker does {who} have at the swimming hall?",
            locker,
        ),
        (
            f"The plumber we found is called {plumber}, and stopped the leak within the hour.",
            f"What is the name of the plumber that {who} found?",
            plumber,
        ),
        (
            f"I have settled on {colour} for the hallway walls, whatever my sister says.",
            f"Which colour did {who} choose for the hallway walls?",
            colour,
        ),
        (
            f"The allergy clinic called: it is {food} that I must not eat any more.",
            f"What must {who} not eat according to the allergy clinic?",
            food,
        ),
        (
            f"The spare key is under the {place} now, in case you come before me.",
            f"Under what is the spare key of {who}?",
            f"the {place}",
        ),
        (
            f"My grandmother's brooch was made in {town}; there is a stamp on its back.",
            f"Where was the brooch of {who}'s grandmother made?",
            town,
        ),
    ]
    chosen = draws.sample(told, 5)
    return [_Fact((said,), "single_hop", asked, answer) for said, asked, answer in chosen]


def _changed_facts(who: str, draws: Draws) -> list[_Fact]:
    days, work, cats = (draws.sample(pool, 3) for pool in (_DAYS, _WORK, _CATS))
    rents = [f"{600 + 25 * draws.below(12) + 300 * step} crowns" for step in range(3)]
    return [
        _Fact(
            (
                f"The choir meets on {days[0]} evenings, in the old dairy.",
                f"Our choir has lost the dairy, so we sing on {days[1]} evenings now.",
                f"The choir has moved once more: {days[2]} evenings, for good this time.",
            ),
            "knowledge_update",
            f"On which day does the choir of {who} meet now?",
            days[2],
            days[1],
        ),
        _Fact(
            (
                f"I have begun at {work[0]}, three days a week for now.",
                f"I handed in my notice; as of next month I am at {work[1]}.",
            ),
            "knowledge_update",
            f"Where does {who} work now?",
            work[1],
            work[0],
        ),
        _Fact(
            (
                f"The landlord wants {rents[0]} of rent a month, heating included.",
                f"The landlord has raised the rent to {rents[1]} a month.",
            ),
            "knowledge_update",
            f"How much rent does the landlord of {who} want a month now?",
            rents[1],
            rents[0],
        ),
        _Fact(
            (
                f"The kitten is called {cats[0]}, because of how it sleeps.",
                f"The kitten turned out to be a tomcat, so it is {cats[1]} now.",
            ),
            "knowledge_update",
            f"What is the kitten of {who} called now?",
            cats[1],
            cats[0],
        ),
    ]


def _joined_facts(who: str, draws: Draws) -> list[_Fact]:
    things, friends, towns = draws.sample(_THINGS, 2), draws.sample(_FRIENDS, 2), _TOWNS[9:]
    homes = draws.sample(towns, 2)
    return [
        _Fact(
            (
                f"I have lent my {thing} to {friend}, who will keep it dry over the winter.",
                f"{friend} has packed up everything and gone to {home}, did you hear?",
            ),
            "multi_hop",
            f"In which place does the person live to whom {who} lent the {thing}?",
            home,
        )
        for thing, friend, home in zip(things, friends, homes, strict=True)
    ]


def _unsaid(who: str, draws: Draws) -> list[_Fact]:
    questions = [
        f"What did {who} pay for the brooch?",
        f"Who conducts the choir of {who}?",
        f"What is the name of {who}'s landlord?",
        f"How old is the kitten of {who}?",
    ]
    return [
        _Fact((), "adversarial", question, _NO_ANSWER, is_abstention=True)
        for question in draws.sample(questions, 2)
    ]


_OPENINGS = _texts(
    "The tram was late again|It rained from breakfast on|I slept badly|The bakery was closed|"
    "We walked along the canal|My knee is better|I finished that long novel|The radio is broken|"
    "The neighbours are painting their fence|I burnt the soup|The swallows are back|"
    "I missed the news|We had fog until noon|The lift is out of order|I ironed for an hour|"
    "The market was crowded|I watched the football|The bread turned out well"
)
_ENDINGS = _texts(
    "so I stayed in and read|and nobody could say why|which suits me well enough|"
    "so we took the long way round|and I laughed about it later|as it always is at this time|"
    "so supper was late|and the afternoon was gone|but the evening made up for it|"
    "so I called my brother instead|and then the sun came out|which I had expected"
)
_REPLIES = _texts(
    "I know the feeling.|That sounds like a good day all the same.|Was it very cold?|"
    "We had the same here, only louder.|You should have called me.|I would have done that too.|"
    "It will be better next week, I am sure.|My mother says the same thing.|Oh dear, and then?|"
    "I have to remember to do that.|At least you got home dry.|Tell me more when we meet.|"
    "I could not have put it better.|There is always something."
)
_NOTED = _texts(
    "Good to know, thank you.|I will remember that.|Really? I had no idea.|Well, well.|"
    "That is news to me."
)


def conversations(config: str = "") -> Iterator[Example]:
    """Write the conversations, each with its questions."""
    for number in range(CONVERSATIONS):
        yield _conversation(number)


def _conversation(number: int) -> Example:
    draws = Draws("long-memory", number)
    who, other = _PAIRS[number]
    began = datetime(2023, 1, 9 + number, 8, 30)
    days = [began + timedelta(days=6 * session + draws.below(5)) for session in range(_SESSIONS)]
    plain = _plain_facts(who, draws)
    facts = [*plain, *_changed_facts(who, draws), *_joined_facts(who, draws)]
    said: dict[int, list[str]] = {}
    for place, fact in enumerate(facts):
        sessions = sorted(draws.sample(range(_SESSIONS - _LATE), len(fact.said)))
        if place == 0:
            sessions = [_SESSIONS - 1]
        for session, text in zip(sessions, fact.said, strict=True):
            said.setdefault(session, []).append(text)
    for event, session in zip(
        draws.sample(_EVENTS, 3), draws.sample(range(_SESSIONS - _LATE), 3), strict=True
    ):
        day = f"{days[session].day} {days[session]:%B %Y}"
        text = f"I wrote it into the house book: {day}, {event}."
        said.setdefault(session, []).append(text)
        facts.append(_Fact((text,), "temporal", f"On what date was it that {event}?", day))
    facts += _unsaid(who, draws)
    turns = [
        turn
        for session, day in enumerate(days)
        for turn in _session(str(session + 1), day, (who, other), said.get(session, []), draws)
    ]
    return {
        "id": f"long-memory-{number + 1}",
        "turns": turns,
        "qa_pairs": [fact.asked() for fact in facts],
    }


def _session(
    name: str, day: datetime, people: tuple[str, str], said: Sequence[str], draws: Draws
) -> Iterator[Example]:
    """Write one session, in which some things are said among much small talk."""
    time = (day + timedelta(minutes=draws.below(600))).isoformat(timespec="minutes")
    exchanges = [
        (f"{draws.pick(_OPENINGS)}, {draws.pick(_ENDINGS)}.", draws.pick(_REPLIES))
        for _ in range(6 + draws.below(3))
    ]
    for text in said:
        exchanges.insert(draws.below(len(exchanges)), (text, draws.pick(_NOTED)))
    for asked, answered in exchanges:
        for role, speaker, content in zip(
            ("user", "assistant"), people, (asked, answered), strict=True
        ):
            yield {
                "role": role,
                "content": content,
                "speaker": speaker,
                "time": time,
                "session": name,
            }
