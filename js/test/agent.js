// Plays what tests/js/test_node.py wrote: agents, and for each the rounds that Python played with it.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { load } from '../manul.js'

const folder = process.argv[2]
for (const name of JSON.parse(readFileSync(`${folder}/names.json`))) {
  const agent = await load(readFileSync(`${folder}/${name}.manul`))
  const rounds = JSON.parse(readFileSync(`${folder}/${name}.json`))
  for (const [number, { context, within, action, density, floor, best, outcome }] of rounds.entries()) {
    const decision = agent.decide(context, { within })
    const where = `${name}, round ${number}`
    assert.deepEqual(decision.action, action, where)
    assert.equal(decision.density, density, where)
    assert.equal(decision.floor, floor, where)
    if (best !== undefined) assert.deepEqual(agent.best(context, { within }), best, where)
    agent.learn(context, JSON.parse(JSON.stringify(decision)), { [agent.outcome]: outcome })
  }
  writeFileSync(`${folder}/${name}.saved`, agent.save())
}
