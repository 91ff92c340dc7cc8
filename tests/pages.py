"""An HTML page as a test reads it: strictly, and with an eye on what could leave the page."""

from html.parser import HTMLParser

_URLS = ("src", "href", "xlink:href", "action", "data", "poster", "srcset", "formaction")


class Page(HTMLParser):
    """What a page holds, read strictly: tags must close in order."""

    def __init__(self, data):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text, self.marked, self.urls = [], [], [], [], []
        self.feed(data)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.urls += [v for k, v in attributes if k in _URLS]
        if tag not in ("meta", "link", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.urls += [v for k, v in attributes if k in _URLS]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)
            if "mark" in self.open:
                self.marked.append(data)

    def check_closed(self):
        """Nothing runs, nothing is asked for, and the policy says so too."""
        assert not {tag for tag, _ in self.tags} & {"script", "iframe", "img", "object", "embed", "form", "base"}
        assert all(url.startswith("#") or url == "data:," for url in self.urls)
        assert not any(name.startswith("on") for _, attributes in self.tags for name in attributes)
        policy = next(a["content"] for tag, a in self.tags if tag == "meta" and "http-equiv" in a)
        assert "default-src 'none'" in policy and "script" not in policy
        identities = [a["id"] for _, a in self.tags if "id" in a]
        assert len(identities) == len(set(identities))
        assert {url[1:] for url in self.urls if url.startswith("#")} <= set(identities)
