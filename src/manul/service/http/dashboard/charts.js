// Charts that follow the size of their box and the theme: lines on uPlot, and heat maps under uPlot's axes.
import { clock, make, number } from "./format.js"

const probe = document.body.appendChild(make("span", { hidden: true }))

export function colour(name) {
  probe.style.color = `var(--${name})`
  return getComputedStyle(probe).color
}

const channels = name =>
  colour(name)
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number)

const charts = new Set()
const observer = new ResizeObserver(entries => {
  for (const { target } of entries) target.chart?.fit()
})

export function redrawAll() {
  for (const chart of charts) chart.plot?.redraw(false, true)
}

export function forgetAll() {
  for (const chart of charts) {
    observer.unobserve(chart.box)
    chart.plot?.destroy()
  }
  charts.clear()
}

function axis(label, values, side) {
  const stroke = () => colour("muted")
  const line = { stroke: () => colour("grid"), width: 1 }
  const font = "12px system-ui, sans-serif"
  const shared = {
    label,
    stroke,
    font,
    labelFont: font,
    labelSize: 18,
    labelGap: 0,
    grid: line,
    ticks: { ...line, size: 4 },
    gap: 4,
  }
  const shown = values && { values: (_, splits) => splits.map(each => values(each)) }
  return { ...shared, ...shown, ...(side === "y" ? { size: widest } : { size: 28, space: 64 }) }
}

function widest(plot, values) {
  const longest = Math.max(3, ...(values ?? []).map(text => String(text ?? "").length))
  return 12 + 7 * longest
}

class Chart {
  constructor(box) {
    this.box = box
    this.note = box.appendChild(make("div", { className: "empty", hidden: true }))
    box.chart = this
    charts.add(this)
    observer.observe(box)
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.box
    if (this.plot && width) this.plot.setSize({ width, height })
  }

  // Shows a sentence instead of the chart; null removes it.
  say(sentence) {
    this.note.hidden = !sentence
    this.note.textContent = sentence ?? ""
  }

  draw(options, data) {
    const { clientWidth: width, clientHeight: height } = this.box
    const base = {
      width,
      height,
      legend: { show: false },
      padding: [10, 30, 0, 0],
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    }
    this.plot = new uPlot({ ...base, ...options }, data, this.box)
  }
}

// `series`: {name, colour, dashed, area, steps, bars, quiet}; `bands`: pairs of places of series; `read` gets what is under the cursor.
export class Lines extends Chart {
  constructor(box, { x, y, series, bands = [], time = false, values, zero = false, range, read }) {
    super(box)
    this.options = {
      scales: {
        x: { time, range: (plot, low, high) => range ?? widened(plot.data[0], low, high) },
        y: { range: (_, low, high) => room(low, high, zero) },
      },
      axes: [axis(x, time ? undefined : number, "x"), axis(y, values ?? number, "y")],
      series: [{}, ...series.map(line)],
      bands: bands.map(pair => ({ series: pair, fill: () => colour("band") })),
      hooks: { setCursor: [plot => read?.(plot.cursor.idx)] },
    }
    if (time) Object.assign(this.options.axes[0], clockAxis)
  }

  // Names the y axis, before the chart is first shown.
  label(y) {
    this.options.axes[1].label = y
  }

  show(data) {
    if (this.plot) this.plot.setData(data)
    else this.draw(this.options, data)
  }
}

const clockTicks = (_, splits, __, ___, step) =>
  splits.map(time => {
    const date = new Date(1000 * time)
    if (step >= 86400) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })
    return date.toLocaleTimeString("en-GB", step < 60 ? {} : { hour: "2-digit", minute: "2-digit" })
  })

// Ticks at whole seconds, minutes, hours and days.
const clockAxis = {
  values: clockTicks,
  incrs: [1, 2, 5, 10, 15, 30]
    .flatMap(each => [each, 60 * each])
    .concat(
      [1, 2, 3, 6, 12].map(each => 3600 * each),
      [1, 2, 5, 10, 20, 50, 100, 365].map(each => 86400 * each),
    )
    .sort((a, b) => a - b),
}

// Adds half an interval on both sides, and a few seconds at least.
function widened(places, low, high) {
  const half = Math.max(places.length > 1 ? places[1] - places[0] : 1, 10 - (high - low)) / 2
  return [low - half, high + half]
}

function room(low, high, zero) {
  if (low === null || high === null) return [0, 1]
  if (zero) return [0, high > 0 ? 1.1 * high : 1]
  const space = (high - low || Math.abs(high) || 1) * 0.1
  return [low >= 0 && low - space < 0 ? 0 : low - space, high + space]
}

function line({ colour: name, dashed, area, steps, bars, quiet }) {
  const paths = steps
    ? uPlot.paths.stepped({ align: 1 })
    : bars
      ? uPlot.paths.bars({ size: [0.8, 24], align: 0 })
      : undefined
  return {
    stroke: () => (quiet ? "transparent" : colour(name)),
    width: quiet ? 0 : 2,
    fill: area || bars ? () => (bars ? colour(name) : colour("band")) : undefined,
    dash: dashed ? [6, 5] : undefined,
    points: { show: false, filter: quiet || steps || bars ? undefined : lonely, size: 4, fill: () => colour(name) },
    ...(paths && { paths }),
  }
}

// A value without neighbours is not on any line, and so gets a dot.
const lonely = ({ data }, place) =>
  data[place].flatMap((value, at, all) =>
    value !== null && (all[at - 1] ?? null) === null && (all[at + 1] ?? null) === null ? [at] : [],
  )

// A heat map: a table of numbers as colours, one row per place on the x axis.
export class Heat extends Chart {
  constructor(box, { x, y, time = false, read }) {
    super(box)
    Object.assign(this, { x, y, time, read })
  }

  // `edges` are the ends of both axes; `labels` name the rows if they are not numbers, and `names` the cells of a row. Values are
  // between 0 and `most`; below a `power` of 1, small ones are visible, and above it, large ones stand out.
  show({ rows, edges, labels, names, line: means = [], most, value, power = 0.5 }) {
    const shape = JSON.stringify([edges.y, labels, names, this.x, this.y])
    if (this.plot && shape !== this.shape) {
      this.plot.destroy()
      this.plot = null
    }
    Object.assign(this, { rows, edges, labels, names, shape, most, value, power })
    const middles = rows.map((_, place) => edges.x[0] + ((place + 0.5) / rows.length) * (edges.x[1] - edges.x[0]))
    const data = [middles, means.length ? means : middles.map(() => null)]
    if (this.plot) this.plot.setData(data)
    else this.draw(this.settings(), data)
  }

  settings() {
    const axes = [axis(this.x, this.time ? undefined : number, "x"), axis(this.y, number, "y")]
    for (const each of axes) each.grid = { show: false }
    if (this.time) Object.assign(axes[0], clockAxis)
    if (this.labels) {
      const room = () => this.box.clientWidth / this.labels.length / 8
      // Dates are in order, so some of them are enough; the cursor shows each with its time.
      const every = () => (this.labels.every(isDate) ? Math.ceil((DATE + 2) / room()) : 1)
      const text = place => (this.labels.every(isDate) ? this.labels[place].slice(0, DATE) : this.labels[place])
      axes[0].splits = () => [...this.labels.keys()].filter(place => place % every() === Math.floor(every() / 2))
      axes[0].values = (_, splits) => splits.map(place => short(text(place), room() * every()))
    }
    if (this.names) {
      axes[1].splits = () => this.names.map((_, place) => place)
      axes[1].values = (_, splits) => splits.map(place => short(this.names[place], 14))
    }
    const hooks = { drawClear: [plot => this.paint(plot)], setCursor: [plot => this.point(plot)] }
    const means = {
      stroke: () => colour("other"),
      width: 2,
      points: { show: Boolean(this.labels), size: 7 },
      ...(this.labels && { paths: () => null }),
    }
    const scales = { x: { time: this.time, range: () => this.edges.x }, y: { range: () => this.edges.y } }
    return { axes, hooks, scales, series: [{}, means] }
  }

  paint(plot) {
    const wide = this.rows.length,
      tall = this.rows[0]?.length ?? 0
    if (!wide || !tall) return
    const from = channels("card"),
      to = channels("heat")
    const image = new ImageData(wide, tall)
    this.rows.forEach((row, x) =>
      row.forEach((value, y) => {
        const share = value === null ? 0 : Math.min(1, value / this.most) ** this.power,
          place = 4 * ((tall - 1 - y) * wide + x)
        for (const each of [0, 1, 2]) image.data[place + each] = from[each] + share * (to[each] - from[each])
        image.data[place + 3] = 255
      }),
    )
    const small = make("canvas", { width: wide, height: tall })
    small.getContext("2d").putImageData(image, 0, 0)
    plot.ctx.save()
    plot.ctx.imageSmoothingEnabled = false
    plot.ctx.drawImage(small, plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height)
    plot.ctx.restore()
  }

  point(plot) {
    const { left, top } = plot.cursor
    if (left === undefined || left < 0) return this.read?.(null)
    const across = Math.floor((left / plot.over.clientWidth) * this.rows.length)
    const up = Math.floor((1 - top / plot.over.clientHeight) * this.rows[0].length)
    const value = this.rows[across]?.[up]
    if (value === undefined) return undefined
    const x = plot.posToVal(left, "x")
    const place = this.labels ? this.labels[across] : this.time ? clock(x) : `${this.x} ${number(x)}`
    const at = this.names ? this.names[up] : `${this.y} ${number(plot.posToVal(top, "y"))}`
    return this.read?.(`${place}, ${at}: ${this.value(value, across, up)}`)
  }
}

const DATE = "2024-02-29".length
const isDate = text => /^\d{4}-\d\d-\d\d/.test(text)
const short = (text, length) => (text.length > length ? `${text.slice(0, Math.max(1, length - 1))}…` : text)
