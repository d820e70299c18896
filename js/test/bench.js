// For benchmarks/edge.py: milliseconds from the bytes to the first decision, by the clock and of CPU time of all threads,
// and microseconds of CPU time a decision.
import { readFileSync } from 'node:fs'
import { load } from '../manul.js'

const [file, list, turns] = process.argv.slice(2)
const contexts = JSON.parse(readFileSync(list))
const bytes = readFileSync(file)
const [start, unused] = [performance.now(), process.cpuUsage()]
const agent = await load(bytes)
agent.decide(contexts[0])
const loaded = performance.now() - start
const spent = process.cpuUsage(unused)

let best = Infinity
for (let turn = 0; turn < Number(turns); ++turn) {
  const before = process.cpuUsage()
  for (const context of contexts) agent.decide(context)
  const used = process.cpuUsage(before)
  best = Math.min(best, (used.user + used.system) / contexts.length)
}
console.log(JSON.stringify({ load: loaded, cpu: (spent.user + spent.system) / 1000, decide: best }))
