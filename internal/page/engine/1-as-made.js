// How elements are asked, whatever a page calls its own.
(tapin => {
  if (tapin.plain) return

  // plain asks elements as the browser made them. A form answers to the names of its
  // fields before its own: <input name=parentNode> would lead whoever walks up in circles.
  const free = f => Function.prototype.call.bind(f)
  const reads = (type, name) => free(Object.getOwnPropertyDescriptor(type.prototype, name).get)
  tapin.plain = {
    free,
    kind: reads(Node, 'nodeType'), parent: reads(Node, 'parentNode'), first: reads(Node, 'firstChild'), next: reads(Node, 'nextSibling'), base: reads(Node, 'baseURI'),
    tag: reads(Element, 'localName'), slot: reads(Element, 'assignedSlot'), textSlot: reads(Text, 'assignedSlot'), shadow: reads(Element, 'shadowRoot'),
    attribute: free(Element.prototype.getAttribute), matches: free(Element.prototype.matches), box: free(Element.prototype.getBoundingClientRect),
    seen: free(Element.prototype.checkVisibility), body: reads(Document, 'body'),
  }
})(globalThis.tapin ??= {})
