// The copy button of a block with a Python prompt copies the code only: without prompts, and without output.
// The theme copies `data-clipboard-text` if a button has it, so it is set before the theme sees the click.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest("[data-clipboard-target]")
    const code = button && document.querySelector(button.dataset.clipboardTarget)
    const text = code && codeWithoutPrompts(code.textContent)
    if (text) button.setAttribute("data-clipboard-text", text)
  },
  true,
)

function codeWithoutPrompts(text) {
  const code = text.split("\n").filter((line) => /^(>>>|\.\.\.)( |$)/.test(line))
  return code
    .map((line) => line.slice(4))
    .join("\n")
    .trimEnd()
}
