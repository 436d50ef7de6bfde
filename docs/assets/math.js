// Typeset every formula that pymdownx.arithmatex has marked; with instant navigation off, once a page.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const text = formula.textContent.trim();
    const display = text.startsWith("\\[");
    katex.render(text.slice(2, -2), formula, { displayMode: display, throwOnError: true });
  }
});
