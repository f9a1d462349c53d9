// What can be wrong with a page, as sentences; none if all is well. Run in the page.
(() => {
  const found = [];
  const name = (node) => `<${node.tagName.toLowerCase()}> “${(node.textContent || "").trim().slice(0, 40)}”`;

  // Nothing is wider than the window.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    found.push(`overflow: the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("svg") && node.tagName !== "svg") continue;
    const box = node.getBoundingClientRect();
    if (box.width > 1 && (box.right > width + 0.5 || box.left < -0.5)) found.push(`overflow: ${name(node)}`);
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 1 && getComputedStyle(node).overflowX !== "visible")
      found.push(`overflow: ${name(node)} hides part of itself`);
  }

  // Contrast in pictures; that of other text is the accessibility checker's.
  const rgb = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (one, other) => {
    const [high, low] = [light(rgb(one)), light(rgb(other))].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const paper = getComputedStyle(document.documentElement).backgroundColor;
  const page = paper === "rgba(0, 0, 0, 0)" ? "rgb(255, 255, 255)" : paper;

  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const outside = (box) =>
      box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    const texts = [...svg.querySelectorAll("text")].filter(
      (text) => text.textContent.trim() && getComputedStyle(text).opacity > 0,
    );
    const boxes = texts.map((text) => text.getBoundingClientRect());
    texts.forEach((text, i) => {
      if (outside(boxes[i])) found.push(`clipped label: ${name(text)}`);
      const ratio = contrast(getComputedStyle(text).fill, page);
      if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(1)} of label ${name(text)}`);
      for (let j = i + 1; j < texts.length; j++) {
        const across = Math.min(boxes[i].right, boxes[j].right) - Math.max(boxes[i].left, boxes[j].left);
        const down = Math.min(boxes[i].bottom, boxes[j].bottom) - Math.max(boxes[i].top, boxes[j].top);
        if (across > 1 && down > 2) found.push(`colliding labels: ${name(text)} and ${name(texts[j])}`);
      }
    });
    for (const mark of svg.querySelectorAll(".role-mark path, .role-mark line")) {
      if (!mark.getAttribute("d") && mark.tagName === "path") continue;
      if (outside(mark.getBoundingClientRect())) found.push("clipped mark: outside the picture");
      if (mark.closest("[clip-path]")) found.push("clipped mark: cut off at the axes");
      const style = getComputedStyle(mark);
      const colours = [style.fill, style.stroke].filter((colour) => colour !== "none" && !colour.endsWith(", 0)"));
      if (colours.length && Math.max(...colours.map((colour) => contrast(colour, page))) < 3)
        found.push(`contrast of a mark below 3: ${colours}`);
    }
  }
  return [...new Set(found)];
})();
