const number = new Intl.NumberFormat("en");

// A chart of lines, each an array of numbers, or null where nothing is known; the last value of each is at the right.
// What is drawn begins at 0 and ends at the highest of all, or at `least`.
function chart(lines, points, least = 0) {
  const known = lines.flat().filter(value => value !== null);
  const highest = Math.max(least, ...known) || 1;
  const made = document.createElementNS("http:" + "//www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", `0 0 ${points} 32`);
  made.setAttribute("preserveAspectRatio", "none");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", `at most ${number.format(highest)}`);
  lines.forEach((values, which) => {
    let part = [];
    const draw = () => {
      if (part.length) made.append(line(made.namespaceURI, part, which));
      part = [];
    };
    values.forEach((value, at) => {
      if (value === null) return draw();
      part.push(`${at + points - values.length},${(30 - 28 * value / highest).toFixed(2)}`);
    });
    draw();
  });
  return made;
}

function line(namespace, points, which) {
  const shape = document.createElementNS(namespace, "polyline");
  // A point alone is seen as a short line.
  if (points.length === 1) points = [points[0], points[0].replace(/^[^,]*/, at => Number(at) - 0.5)];
  shape.setAttribute("points", points.join(" "));
  shape.setAttribute("class", `line${which}`);
  return shape;
}
