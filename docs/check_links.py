"""Checks that every link inside a site leads somewhere.

    python3 docs/check_links.py FOLDER

A link to another site is not followed. A part of a page (#part) must be there too. Pages of the API and the live page
are made by other programs: there only files are checked, because some parts are made by scripts, and pdoc and rustdoc
name parts that they leave out. What rustdoc links among its own pages is not checked: it leads to the private module of
an item that stands at the root, where the crates were documented in another order.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Folders of pages that others make.
RUST = "rust/"
GENERATED = (RUST, "python/", "live/")


class Page(HTMLParser):
    """The links and the parts of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.parts = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value and tag != "base":
                self.links.append(value)
            if name in ("id", "name") and value:
                self.parts.add(value)


def problem(site, page, link, pages):
    """What is wrong with a link of a page, None where it is right."""
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return None
    path = unquote(address.path)
    if path.startswith("/"):
        return "it starts at the root of the server"
    target = (page.parent / path).resolve() if path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        own = str(page.relative_to(site)).startswith(RUST)
        own = own and str(target).startswith(f"{site}/{RUST}")
        return None if own else "there is no such file"
    is_ours = not str(target.relative_to(site)).startswith(GENERATED)
    if is_ours and address.fragment and target in pages:
        if unquote(address.fragment) not in pages[target].parts:
            return "the page has no such part"
    return None


def main(folder):
    site = Path(folder).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    links = wrong = 0
    for path, page in pages.items():
        if path.name in ("404.html", "toc.html"):  # made for the root of a server, or for a frame
            continue
        for link in page.links:
            links += 1
            found = problem(site, path, link, pages)
            if found:
                wrong += 1
                print(f"{path.relative_to(site)}: {link}: {found}")
    print(f"{links} links in {len(pages)} pages, {wrong} wrong")
    return 1 if wrong or not links else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
