"""Finds the IANA zone that a caller probably meant by another spelling, a city, a Windows zone or an offset."""

from __future__ import annotations

import re
from functools import cache

from sweephand.schedules.zones.localtime import names

WINDOWS = """\
Afghanistan Standard Time=Asia/Kabul
Alaskan Standard Time=America/Anchorage
Arab Standard Time=Asia/Riyadh
Arabian Standard Time=Asia/Dubai
Arabic Standard Time=Asia/Baghdad
Argentina Standard Time=America/Argentina/Buenos_Aires
Atlantic Standard Time=America/Halifax
AUS Central Standard Time=Australia/Darwin
AUS Eastern Standard Time=Australia/Sydney
Azerbaijan Standard Time=Asia/Baku
Azores Standard Time=Atlantic/Azores
Bangladesh Standard Time=Asia/Dhaka
Belarus Standard Time=Europe/Minsk
Canada Central Standard Time=America/Regina
Cape Verde Standard Time=Atlantic/Cape_Verde
Caucasus Standard Time=Asia/Yerevan
Cen. Australia Standard Time=Australia/Adelaide
Central America Standard Time=America/Guatemala
Central Asia Standard Time=Asia/Almaty
Central Brazilian Standard Time=America/Cuiaba
Central Europe Standard Time=Europe/Budapest
Central European Standard Time=Europe/Warsaw
Central Pacific Standard Time=Pacific/Guadalcanal
Central Standard Time=America/Chicago
Central Standard Time (Mexico)=America/Mexico_City
China Standard Time=Asia/Shanghai
Cuba Standard Time=America/Havana
E. Africa Standard Time=Africa/Nairobi
E. Australia Standard Time=Australia/Brisbane
E. Europe Standard Time=Europe/Chisinau
E. South America Standard Time=America/Sao_Paulo
Eastern Standard Time=America/New_York
Eastern Standard Time (Mexico)=America/Cancun
Egypt Standard Time=Africa/Cairo
Ekaterinburg Standard Time=Asia/Yekaterinburg
Fiji Standard Time=Pacific/Fiji
FLE Standard Time=Europe/Kyiv
Georgian Standard Time=Asia/Tbilisi
GMT Standard Time=Europe/London
Greenland Standard Time=America/Nuuk
Greenwich Standard Time=Atlantic/Reykjavik
GTB Standard Time=Europe/Bucharest
Hawaiian Standard Time=Pacific/Honolulu
India Standard Time=Asia/Kolkata
Iran Standard Time=Asia/Tehran
Israel Standard Time=Asia/Jerusalem
Jordan Standard Time=Asia/Amman
Kaliningrad Standard Time=Europe/Kaliningrad
Korea Standard Time=Asia/Seoul
Libya Standard Time=Africa/Tripoli
Mauritius Standard Time=Indian/Mauritius
Middle East Standard Time=Asia/Beirut
Montevideo Standard Time=America/Montevideo
Morocco Standard Time=Africa/Casablanca
Mountain Standard Time=America/Denver
Mountain Standard Time (Mexico)=America/Mazatlan
Myanmar Standard Time=Asia/Yangon
N. Central Asia Standard Time=Asia/Novosibirsk
Namibia Standard Time=Africa/Windhoek
Nepal Standard Time=Asia/Kathmandu
New Zealand Standard Time=Pacific/Auckland
Newfoundland Standard Time=America/St_Johns
North Asia East Standard Time=Asia/Irkutsk
North Asia Standard Time=Asia/Krasnoyarsk
Pacific SA Standard Time=America/Santiago
Pacific Standard Time=America/Los_Angeles
Pacific Standard Time (Mexico)=America/Tijuana
Pakistan Standard Time=Asia/Karachi
Paraguay Standard Time=America/Asuncion
Romance Standard Time=Europe/Paris
Russian Standard Time=Europe/Moscow
SA Eastern Standard Time=America/Cayenne
SA Pacific Standard Time=America/Bogota
SA Western Standard Time=America/La_Paz
Samoa Standard Time=Pacific/Apia
SE Asia Standard Time=Asia/Bangkok
Singapore Standard Time=Asia/Singapore
South Africa Standard Time=Africa/Johannesburg
Sri Lanka Standard Time=Asia/Colombo
Syria Standard Time=Asia/Damascus
Taipei Standard Time=Asia/Taipei
Tasmania Standard Time=Australia/Hobart
Tokyo Standard Time=Asia/Tokyo
Tonga Standard Time=Pacific/Tongatapu
Turkey Standard Time=Europe/Istanbul
Ulaanbaatar Standard Time=Asia/Ulaanbaatar
US Eastern Standard Time=America/Indiana/Indianapolis
US Mountain Standard Time=America/Phoenix
Venezuela Standard Time=America/Caracas
Vladivostok Standard Time=Asia/Vladivostok
W. Australia Standard Time=Australia/Perth
W. Central Africa Standard Time=Africa/Lagos
W. Europe Standard Time=Europe/Berlin
West Asia Standard Time=Asia/Tashkent
West Pacific Standard Time=Pacific/Port_Moresby
Yakutsk Standard Time=Asia/Yakutsk
"""
"""From CLDR's windowsZones.xml, territory 001."""
FIXED = {
    "EST": ("UTC-5", "America/New_York"),
    "MST": ("UTC-7", "America/Denver"),
    "HST": ("UTC-10", "Pacific/Honolulu"),
}
"""Abbreviations that IANA data has as zones without daylight saving time: their offset, and the zone often meant."""
_LONGEST = 60
"""The most characters of a name for which a similar one is looked for."""
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII | re.IGNORECASE)
_LETTERS = {
    "CET": "Europe/Berlin",
    "CEST": "Europe/Berlin",
    "EDT": "America/New_York",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "BST": "Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
    "AEDT": "Australia/Sydney",
    "Z": "UTC",
}


def suggestion(text: str) -> str | None:
    """Suggests what to write instead of an unknown zone, as the end of a sentence; None if nothing is similar."""
    bare = text.strip()
    if len(bare) > _LONGEST:
        return None
    match = _OFFSET.fullmatch(bare)
    if match:
        return _offset(match[1], int(match[2]), int(match[3] or 0))
    meant = _windows().get(bare.lower()) or _LETTERS.get(bare.upper()) or _near(bare)
    return f'did you mean "{meant}"?' if meant else None


def _offset(sign: str, hours: int, minutes: int) -> str | None:
    if minutes or hours > 14:
        return "an offset is not a time zone; name the place, because only a zone knows its clock changes"
    inverse = "-" if sign == "+" else "+"
    name = f"Etc/GMT{inverse}{hours}" if hours else "UTC"
    if name not in names():
        return None
    written = f'write "{name}" for this offset all year (its sign is reversed)'
    return f"an offset is not a time zone; name the place, or {written}"


def _near(text: str) -> str | None:
    """Returns the zone whose name or city differs only in case and spaces; else the most similar name."""
    bare = re.sub(r"[\s_]+", "_", text).lower()
    known, cities = _places()
    if bare in known:
        return known[bare]
    if bare in cities:
        return cities[bare]
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for an error

    ends = {bare[:1], bare[-1:]}
    alike = [name for name in known if name[0] in ends or name[-1] in ends]
    alike = [name for name in alike if abs(len(name) - len(bare)) * 5 <= len(name) + len(bare)]
    close = get_close_matches(bare, alike, 1, 0.8)
    return known[close[0]] if close else None


@cache
def _windows() -> dict[str, str]:
    return {name.lower(): zone for name, zone in (line.split("=") for line in WINDOWS.splitlines())}


@cache
def _places() -> tuple[dict[str, str], dict[str, str]]:
    """Returns the zones by name and by city, both in lower case."""
    ordered = sorted(names(), reverse=True)
    cities = {name.lower().rpartition("/")[2]: name for name in ordered if "/" in name}
    return {name.lower(): name for name in ordered}, cities
