// Formats numbers and times, and makes elements.
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 })

export const count = value => (value < 100000 ? whole : compact).format(value)

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–"
  const size = Math.abs(value)
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(digits - 1)
  return String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1))))))
}

// A value of a knob: a number, or an option.
export const text = value => (typeof value === "number" ? number(value) : String(value))

export const milliseconds = value =>
  value === null || value === undefined ? "–" : value >= 1000 ? `${number(value / 1000)} s` : `${number(value)} ms`

export function seconds(value, digits = 3) {
  const [unit, length] = [
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
    ["second", 1],
  ].find(([, length]) => value >= length) ?? ["second", 1]
  const amount = number(value / length, digits)
  return `${amount} ${unit}${amount === "1" ? "" : "s"}`
}

export const clock = time => new Date(1000 * time).toLocaleTimeString("en-GB")

export function make(name, options = {}, ...children) {
  const { style = {}, ...given } = options
  const element = Object.assign(document.createElement(name), given)
  Object.assign(element.style, style)
  element.append(...children)
  return element
}

// An entry of a chart's legend; `kind` is dashed, area, ramp or empty.
export function key(text, colour, kind = "") {
  return make("span", { className: "key" }, make("i", { className: kind, style: { borderColor: colour } }), text)
}
