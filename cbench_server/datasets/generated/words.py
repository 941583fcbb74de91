"""Words for names that occur nowhere else: pairs of common words, and invented ones."""

from cbench_server.datasets.generated.draws import Draws


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ADJECTIVES = _words(
    "amber ancient arctic bashful blue bold brisk bronze calm clever coastal copper cosmic "
    "crimson curious daring distant dusty eager early electric faint famous fearless floral "
    "fluffy foggy frosty frozen gentle giant glossy golden graceful grand gray green happy "
    "hidden hollow honest humble icy idle ivory jolly keen kind lively lofty lonely lucky "
    "lunar marble mellow merry mighty misty modest mossy narrow noble nimble northern odd "
    "olive pale patient placid plain polite proud purple quick quiet rapid rare rosy round "
    "royal rural rusty sandy scarlet secret sharp shy silent silver sleepy slender smooth "
    "snowy solar solid southern spare speedy spicy steady stormy strange sturdy sunny swift "
    "tame tidy tiny tired tranquil upper useful velvet violet vivid wandering warm western "
    "wild windy wise witty wooden yellow young zesty"
)
_NOUNS = _words(
    "acorn anchor anvil apple arrow badger bakery balcony barrel basket beacon bishop blanket "
    "boulder bridge bucket butter button cabin candle canyon carpet castle cedar cellar "
    "chapel cherry chimney clover comet compass copper cotton cradle cricket crystal curtain "
    "daisy dolphin donkey dragon drum eagle ember engine falcon farmer feather fiddle forest "
    "fossil fountain fox galaxy garden garnet ginger glacier goblet gravel guitar hammer "
    "harbor harvest hazel heron hill horse hunter island ivy jacket jasmine jewel juniper "
    "kettle kitten ladder lagoon lantern lemon library lily lizard lobster magnet mango maple "
    "market meadow melon mill mirror monkey moon mountain museum needle nutmeg oasis ocean "
    "onion orchard otter oyster paddle palace panda paper parrot pebble pencil pepper piano "
    "pigeon pilot planet plum pocket pony poppy potato prairie puzzle pyramid quarry rabbit "
    "raven ribbon river rocket saddle sailor salmon scarf shadow shell shovel sparrow spider "
    "spoon squirrel stable station sunset swan tailor teapot temple thunder tiger timber "
    "tower trumpet tulip tunnel turtle valley violin wagon walnut waterfall whale willow "
    "window winter wizard zebra"
)
_ONSETS = _words("b d f g h j k l m n p r s t v w z br dr fl gr kl pl pr sk sl st tr")
_VOWELS = _words("a e i o u ai au ea io ou")
_ENDS = _words("n l r s t m d k nd rt st ll")

PAIRS = tuple(sorted({f"{a}-{n}" for a in _ADJECTIVES for n in _NOUNS}))
"""Names such as `amber-anchor`."""


def invented(draws: Draws, count: int) -> list[str]:
    """Draw different words of two or three syllables that no language has on purpose."""
    found: dict[str, None] = {}
    while len(found) < count:
        syllables = 2 + draws.below(2)
        word = "".join(draws.pick(_ONSETS) + draws.pick(_VOWELS) for _ in range(syllables))
        found.setdefault(word + draws.pick(_ENDS))
    return list(found)
