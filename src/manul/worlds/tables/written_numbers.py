"""Numbers as people write them: with currency signs, units, thousands separators, decimal commas and several minus signs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

PLAIN = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")  # what a column of numbers may contain
_SIGN = "[-+\u2212\u2013\u2010\u2011\ufe63\uff0d]"
_SEPARATOR = "[,.' \u00a0\u2009\u202f\u2019]"
_DIGITS = rf"""
    (?: [0-9]{{1,3}} (?P<gap>{_SEPARATOR}) [0-9]{{3}} (?: (?P=gap) [0-9]{{3}} )* (?: (?! (?P=gap) ) [.,] [0-9]+ )?
      | [0-9]{{1,2}} (?: , [0-9]{{2}} )+ , [0-9]{{3}} (?: \. [0-9]+ )?     # 12,34,567, as in India
      | [0-9]+ (?: [.,] [0-9]* )?
      | [.,] [0-9]+
    ) (?: [eE] [-+]? [0-9]+ )? (?: (?<=[.,]) [-\u2013\u2014]{{1,2}} )?      # 12,- is a price
"""
_WRITTEN = re.compile(
    rf"""'? (?P<open>\()? {_SIGN}? \s? (?P<before>[^\s\d(+.,'-]{{1,4}}\.?)? \s? (?P<inner>\()? {_SIGN}? \s?
    (?P<digits>{_DIGITS}) (?P<space>\s?) (?P<after>[^\s\d.,:+-][^\d]{{0,15}}?(?:[0-9]|/[0-9]{{3}}\s?km)?)? {_SIGN}?
    (?(inner)\)) (?(open)\))""",
    re.VERBOSE,
)
_CURRENCY_WORDS = (
    "aed ars aud bdt bgn brl cad chf clp cny cop czk dkk egp eur gbp hkd huf idr ils inr isk jpy kes krw kzt mad mxn myr ngn nok nzd "
    "pen php pkr pln qar ron rsd rub sar sek sgd thb try twd uah usd uyu vnd zar kr fr fr. sfr. rs rs. zł kč ft lei rm r$ "
    "us$ a$ c$ nz$ hk$ s$ au$ ca$"
)
_UNIT_WORDS = (  # with the digit 1 for every digit, so m1 is m2 or m3
    """% ‰ pct percent ° °c °f " ″ mm cm dm km in inch inches ft feet yd mi mile miles m² m1 km² km1 cm² cm1 ha qm sqm sqft acre
    acres ml cl dl liter liters litre litres m³ cc ccm gal mg kg lb lbs oz ton tons ms sec secs second seconds min mins minute
    minutes hr hrs hour hours day days week weeks mo month months yr yrs year years km/h kmh kph mph m/s kw mw kwh wh mwh hp ps
    bhp ma mah nm bar psi hz khz mhz ghz db kb mb gb tb mbps px mp l/111km mpg kmpl km/l kmph g/km mio mio. mln bn pcs pc
    pts"""
)
_CURRENCIES, _UNITS = frozenset(_CURRENCY_WORDS.split()), frozenset(_UNIT_WORDS.split())
_LETTERS = frozenset("mlgtshdykKMLVAWCF")  # units of one letter, whose case matters: 5 G is no unit, but a network
_MAGNITUDES = frozenset("kKM")  # "300K" and "1.2M" may be in one column
_NO_UNITS = ("st", "nd", "rd", "th", "am", "pm", "xs", "xl", "xxl")  # of ordinals, clocks and sizes of clothes
_CODE = re.compile(r"[^1-9.,]*0[0-9]{2,}")
_SAME_DIGITS = str.maketrans("023456789", "1" * 9)  # numbers of one shape are read once, for speed
_LEAST_DISTINCT = 3  # numbers with an unknown word behind them before the word counts as their unit
_SHARE_WITH_UNITS = 0.5  # of the rows that must be numbers
_SHARE_OF_PLAIN = 0.9  # more than with units, which are a clear sign: digits may be codes
_LEAST_PLAIN = 5  # different numbers among other texts; fewer may be codes, like 1, X and 2
_TELEPHONE, _POSTAL_CODE = 7, 5  # digits from which numbers that are all equally long are more likely such codes


@dataclass(frozen=True)
class WrittenNumbers:
    """The numbers in a column of text: their rows, an example that is not plain, other texts, and how many units there are."""

    rows: int
    example: str
    others: tuple[str, ...]
    units: int


def find_numbers(texts: Mapping[str, int]) -> WrittenNumbers | None:
    """Find the numbers in a column of text, given the number of rows of each text; None if it is probably no quantity."""
    numbers = _with_units({text: parts for text in texts if (parts := _read(text)) is not None})
    if not numbers or _are_codes(numbers):
        return None
    units = Counter[str]()
    for text, parts in numbers.items():
        units[parts.unit] += texts[text]
    others = tuple(text for text in texts if text not in numbers)
    rows, total = units.total(), sum(texts.values())
    if others and units[""] > rows / 2 and (rows < _SHARE_OF_PLAIN * total or len(numbers) < _LEAST_PLAIN):
        return None
    if rows < _SHARE_WITH_UNITS * total:
        return None
    example = next((text for text in numbers if not PLAIN.fullmatch(text)), next(iter(numbers)))
    return WrittenNumbers(rows, example, others, sum(1 for unit in units if unit))


def is_written_number(text: str) -> bool:
    """Whether a text is a number, plain or with a known unit."""
    parts = _read(text)
    return parts is not None and parts.is_common


@dataclass(frozen=True)
class _Parts:
    """The parts of a written number: its digits with separators, its unit, and whether there is a space before the unit."""

    digits: str
    unit: str
    spaced: bool

    @property
    def is_common(self) -> bool:
        known = self.unit in _LETTERS if self.is_letter else self.unit.lower().replace(" ", "") in _UNITS
        return not self.unit or known or _is_currency(self.unit)

    @property
    def is_letter(self) -> bool:
        return len(self.unit) == 1 and self.unit.isalpha()


def _read(text: str) -> _Parts | None:
    """Read a number; one with zeros in front is a code."""
    return None if _CODE.match(text) else _read_shape(text.translate(_SAME_DIGITS))


@lru_cache(maxsize=4096)
def _read_shape(shape: str) -> _Parts | None:
    match = _WRITTEN.fullmatch(shape)
    if match is None:
        return None
    before, after = match["before"] or "", (match["after"] or "").strip()
    if before and not _is_currency(before):
        return None
    return _Parts(match["digits"], after or before, bool(match["space"]))


def _is_currency(word: str) -> bool:
    return word.lower() in _CURRENCIES or (len(word) == 1 and unicodedata.category(word) == "Sc")


def _with_units(read: Mapping[str, _Parts]) -> dict[str, _Parts]:
    """The numbers of a column whose units are plausible, with singular and plural as one unit."""
    words = {parts.unit.rstrip("s.") for parts in read.values()}
    word = next(iter(words), "")
    if len(words) == 1 and len(read) >= _LEAST_DISTINCT and word.islower() and word not in _NO_UNITS:
        return {text: replace(parts, unit=word) for text, parts in read.items() if parts.is_common or parts.spaced}
    common = {text: parts for text, parts in read.items() if parts.is_common}
    units = {parts.unit for parts in common.values()}
    if len(units) == 1 or units <= {*_MAGNITUDES, ""}:
        return common
    return {  # "12a" and "12d" are more likely house numbers or seats
        text: parts for text, parts in common.items() if not parts.is_letter or (parts.spaced and parts.unit.islower())
    }


def _are_codes(numbers: Mapping[str, _Parts]) -> bool:
    """Whether numbers are all equally long and without units, like telephone numbers in groups, or postal codes."""
    lengths = {sum(each.isdigit() for each in parts.digits) for parts in numbers.values()}
    if len(lengths) > 1 or len(numbers) == 1 or any(parts.unit for parts in numbers.values()):
        return False
    is_telephone = all(" " in parts.digits for parts in numbers.values()) and max(lengths) >= _TELEPHONE
    return is_telephone or (all(parts.digits.isdigit() for parts in numbers.values()) and max(lengths) >= _POSTAL_CODE)
