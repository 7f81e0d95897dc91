"""A lab drawn from its description: sites as boxes, hosts with role and limits, links."""

from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from labbook import systems
from labbook.figures.canvas import EDGE, FAINT, INK, PALETTE, PAPER, WASH, Picture, panel, theme
from labbook.figures.numbers import name
from labbook.lab.quantities import size_text

# Inches. Two cards side by side fill a phone; sites stand below each other, joined by their links.
CARD_WIDTH, LINE, GAP, HEAD, BETWEEN_SITES = 2.0, 0.185, 0.16, 0.34, 0.75
SHOWN_ALONE = 4   # more hosts of one kind in a site share a card


def topology(description) -> Picture:
    """Draw a LabDescription."""
    sites = [(site, _cards(description, site)) for site in description.sites]
    columns = 2 if any(len(cards) > 1 for _, cards in sites) else 1
    boxes, width, height = _layout(sites, columns, bool(description.links))
    with theme():
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        for link in description.links:
            _draw_link(axes, link, boxes, width)
        for site, cards in sites:
            _draw_site(axes, site, cards, boxes[site], columns)
        return Picture((panel(figure, alt(description)),))


def alt(description) -> str:
    """Alternative text: the lab in words."""
    parts = []
    for site in description.sites:
        hosts = "; ".join(f"{title}: " + ", ".join([role, *lines])
                          for title, role, lines in _cards(description, site))
        parts.append(f"Site {site} with {hosts}.")
    parts += [f"Link between {' and '.join(link['between'])}: {_link_text(link)}."
              for link in description.links]
    return "Drawing of the lab. " + " ".join(parts)


def _cards(description, site) -> list[tuple[str, str, list[str]]]:
    """(title, role, lines) for each host of the site; several equal hosts share one card."""
    cards = []
    hosts = [host for host in description.hosts if host.site == site]
    for (role, lines), alike in groupby(hosts, key=lambda h: (h.role, _lines(description, h))):
        names = [host.name for host in alike]
        if len(names) >= SHOWN_ALONE:
            names, role = [f"{names[0]} … {names[-1]}"], f"{role}, {len(names)} hosts"
        cards += [(title, role, list(lines)) for title in names]
    return cards


def _lines(description, host) -> tuple[str, ...]:
    limits, disk = host.limits, host.limits.get("disk")
    lines = []
    if "cores_of" in limits:
        lines.append(f"core{'s' * (len(limits['cores_of']) > 1)} of {', '.join(limits['cores_of'])}")
    elif "cores" in limits:
        share = f", {limits['quota']:.0%} of its time" if "quota" in limits else ""
        lines.append(f"{limits['cores']} core{'s' if limits['cores'] > 1 else ''}{share}")
    if "quota" in limits and "cores" not in limits:
        lines.append(f"time of {limits['quota']:g} cores in all")
    if "memory" in limits:
        lines.append(f"{size_text(limits['memory'])} memory")
    if host.experiments:
        lines.append(f"for {', '.join(host.experiments)} alone")
    if disk:
        speed = f", {disk['iops']} IOPS" if "iops" in disk else ""
        modelled = ", modelled" if "model" in disk else ""
        alone = f" for {', '.join(disk['modelled_in'])}" if "modelled_in" in disk else ""
        lines.append(f"disk {size_text(disk['size'])}{speed}{modelled}{alone}")
    lines += [_software(s, host, description.name) for s in description.systems if host.name in s["hosts"]]
    return tuple(lines)


def _software(system, host, study) -> str:
    """Name and version of a host's system, or the name of its part in a cluster."""
    kind = systems.find(system["name"], study)
    if systems.over_several(kind):
        return name(getattr(kind, "PARTS", {}).get(host.role, system["name"]))
    return " ".join([name(system["name"]), str(system.get("settings", {}).get("version", ""))]).strip()


def _card_height(card) -> float:
    return LINE * (2 + len(card[2])) + 0.2


def _layout(sites, columns, linked):
    """site -> (x, y, width, height) in inches, and the size of the whole."""
    inner = columns * CARD_WIDTH + (columns - 1) * GAP
    margin = 0.5 if len(sites) > 2 and linked else 0.06   # room for links that pass a site by
    boxes, top = {}, 0.06
    for site, cards in sites:
        rows = [cards[i:i + columns] for i in range(0, len(cards), columns)]
        height = HEAD + sum(max(map(_card_height, row)) + GAP for row in rows)
        boxes[site] = (0.06, top, inner + 2 * GAP, height)
        top += height + BETWEEN_SITES
    return boxes, inner + 2 * GAP + 0.06 + margin, top - BETWEEN_SITES + 0.06


def _draw_site(axes, site, cards, box, columns):
    x, y, width, height = box
    _box(axes, x, y, width, height, WASH, EDGE)
    axes.text(x + GAP, y + HEAD / 2, f"site {site}", fontsize=9, color=INK, va="center")
    top = y + HEAD
    for i in range(0, len(cards), columns):
        row = cards[i:i + columns]
        tallest = max(map(_card_height, row))
        for column, card in enumerate(row):
            _draw_card(axes, card, x + GAP + column * (CARD_WIDTH + GAP), top, tallest)
        top += tallest + GAP


def _draw_card(axes, card, x, y, height):
    title, role, lines = card
    colour = PALETTE[0] if role.startswith("client") else PALETTE[1] if role.startswith("db") else PALETTE[2]
    _box(axes, x, y, CARD_WIDTH, height, PAPER, colour)
    axes.text(x + 0.12, y + 0.1 + LINE / 2, title, fontsize=10, weight="bold", color=INK,
              va="center")
    axes.text(x + 0.12, y + 0.1 + 1.5 * LINE, role, fontsize=8.5, color=INK, va="center")
    for i, line in enumerate(lines):
        axes.text(x + 0.12, y + 0.13 + (2.5 + i) * LINE, line, fontsize=8.5, color=INK, va="center")


def _draw_link(axes, link, boxes, width):
    """Draw a straight line between neighbours, an arc on the right between others."""
    upper, lower = sorted((boxes[site] for site in link["between"]), key=lambda box: box[1])
    names = list(boxes)
    a, b = link["between"]
    if abs(names.index(a) - names.index(b)) == 1:
        x = upper[0] + upper[2] / 2
        ends, rad = ((x, upper[1] + upper[3]), (x, lower[1])), 0
        middle = (x, (ends[0][1] + ends[1][1]) / 2)
    else:
        x = upper[0] + upper[2]
        ends, rad = ((x, upper[1] + upper[3] / 2), (x, lower[1] + lower[3] / 2)), -0.15
        middle = (width - 0.25, (ends[0][1] + ends[1][1]) / 2)
    axes.add_patch(FancyArrowPatch(*ends, arrowstyle="<->", mutation_scale=9, color=FAINT,
                                   connectionstyle=f"arc3,rad={rad}", linewidth=1.4))
    axes.text(*middle, _link_text(link), fontsize=8.5, color=INK, ha="center", va="center",
              rotation=0 if rad == 0 else 90,
              bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 2})


def _link_text(link) -> str:
    if set(link) == {"between"}:
        return "each measurement sets it"
    parts = [f"RTT {link.get('rtt_ms', 0):g} ms"]
    if link.get("jitter_ms"):
        parts.append(f"± {link['jitter_ms']:g} ms")
    if link.get("loss"):
        parts.append(f"{link['loss']:.2%} lost")
    if link.get("rate_mbit"):
        parts.append(f"{link['rate_mbit']:g} Mbit/s")
    return ", ".join(parts)


def _box(axes, x, y, width, height, face, edge):
    axes.add_patch(FancyBboxPatch((x, y), width, height, facecolor=face, edgecolor=edge,
                                  linewidth=1.1, boxstyle="round,pad=0,rounding_size=0.07"))
