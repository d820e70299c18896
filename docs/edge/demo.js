// The page decides and learns by itself: after it is loaded, there are no requests.
import { load } from './manul.js'

const part = (name) => document.querySelector(`#edge [data-part="${name}"]`)
const SEGMENTS = { student: 12, tourist: 28 } // what most of them would pay at most

const response = await fetch(new URL('shop.manul', import.meta.url))
const agent = await load(await response.arrayBuffer())
let visitors = 0
let earned = 0

function visit() {
  const segment = Math.random() < 0.5 ? 'student' : 'tourist'
  const context = { segment, hour: Math.floor(24 * Math.random()) }
  const decision = agent.decide(context, { seed: Math.floor(2 ** 53 * Math.random()) })
  const bought = decision.action < SEGMENTS[segment] * (0.85 + 0.3 * Math.random())
  agent.learn(context, decision, { reward: bought ? decision.action : 0 })
  visitors += 1
  earned += bought ? decision.action : 0
  return `${segment}, price ${decision.action.toFixed(2)} (density ${decision.density.toFixed(3)}): ${bought ? 'sold' : 'not sold'}`
}

function show(last) {
  part('last').textContent = last
  part('visitors').textContent = visitors
  part('mean').textContent = visitors ? (earned / visitors).toFixed(2) : '–'
  for (const segment of Object.keys(SEGMENTS))
    part(segment).textContent = agent.best({ segment, hour: 12 }).toFixed(2)
}

// In pieces, so that the page stays alive.
function play(count) {
  const started = performance.now()
  let last = ''
  const piece = () => {
    for (const end = performance.now() + 30; count > 0 && performance.now() < end; --count) last = visit()
    show(last)
    if (count > 0) return setTimeout(piece)
    part('time').textContent = `${((performance.now() - started) / 1000).toFixed(1)} s`
    part('state').textContent = 'ready'
  }
  part('state').textContent = 'playing'
  piece()
}

for (const button of document.querySelectorAll('#edge button[data-count]'))
  button.addEventListener('click', () => play(Number(button.dataset.count)))
document.querySelector('#edge button[data-save]').addEventListener('click', () => {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([agent.save()]))
  link.download = 'shop.manul'
  link.click()
})
show('–')
part('state').textContent = 'ready'
