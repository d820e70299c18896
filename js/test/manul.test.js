// What the package itself promises; that it decides as Python does is tested in tests/js.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { InputError, load } from '../manul.js'

const bytes = readFileSync(process.env.MANUL_FILE) // an Auto with actions (5, 40) that learns from rewards in (0, 50)
const oslo = { city: 'Oslo', age: 31 }

const sentence = (field, pattern) => (error) => {
  assert.ok(error instanceof InputError, error.stack)
  assert.equal(error.field, field)
  assert.match(error.message, pattern)
  return true
}

test('a decision has an action, a density, a floor, a number and the signature of its model', async () => {
  const agent = await load(bytes)
  const decision = agent.decide(oslo)
  assert.deepEqual(Object.keys(decision), ['action', 'density', 'floor', 'number', 'model', 'copy'])
  assert.equal(decision.model, createHash('sha256').update(bytes).digest('hex'))
  assert.equal(agent.decide(oslo).number, decision.number + 1)
})

test('each copy has a text of its own, or the one that it was given', async () => {
  const copies = await Promise.all([0, 1, 2].map(async () => (await load(bytes)).decide(oslo).copy))
  assert.equal(new Set(copies).size, 3)
  for (const copy of copies) assert.match(copy, /^[0-9a-f]{32}$/)
  const agent = await load(bytes, { copy: 'phone-4711' })
  assert.deepEqual([agent.copy, agent.decide(oslo).copy], ['phone-4711', 'phone-4711'])
  for (const copy of ['', 'a'.repeat(41), 'a b', 'a\n', 7, null])
    await assert.rejects(load(bytes, { copy }), sentence('copy', /^copy must be a text of 1 to 40 letters/))
})

test('a decision after the copy has learned has no model, because its density is another', async () => {
  const agent = await load(bytes)
  const before = agent.decide(oslo)
  assert.throws(() => agent.learn(oslo, before, { reward: 51 }))
  assert.equal(agent.decide(oslo).model, agent.model)
  agent.learn(oslo, before, { reward: 3 })
  assert.equal(before.model, agent.model)
  assert.equal(agent.decide(oslo).model, null)
  const again = await load(agent.save())
  assert.equal(again.decide(oslo).model, createHash('sha256').update(agent.save()).digest('hex'))
})

test('the bytes may be an ArrayBuffer or a view of a part of one', async () => {
  const padded = new Uint8Array(bytes.length + 7)
  padded.set(bytes, 5)
  const agents = await Promise.all([bytes, new Uint8Array(bytes).buffer, padded.subarray(5, 5 + bytes.length)].map(load))
  const { copy, ...decided } = (await load(bytes)).decide(oslo)
  for (const agent of agents) assert.deepEqual(agent.decide(oslo), { ...decided, copy: agent.copy })
})

test('what is no file is refused in one sentence', async () => {
  await assert.rejects(load('text'), sentence('bytes', /^bytes must be those of a \.manul file/))
  await assert.rejects(load(bytes.subarray(0, 100)), sentence('bytes', /^file is damaged/))
  await assert.rejects(load(new Uint8Array(0)), sentence('bytes', /^file is damaged/))
})

test('each seed draws other actions, and the same ones again', async () => {
  const actions = async (seed) => (await load(bytes)).decide(oslo, { seed }).action
  const drawn = await Promise.all([1, 2, 3n, 2n ** 64n - 1n].map(actions))
  assert.equal(new Set(drawn).size, 4)
  assert.deepEqual(await Promise.all([1n, 2n, 3, 2n ** 64n - 1n].map(actions)), drawn)
})

test('a wrong seed, range, outcome, decision or context is refused, and nothing changes', async () => {
  const agent = await load(bytes)
  const decision = agent.decide(oslo)
  const before = agent.save()
  for (const seed of [-1, 0.5, 2n ** 64n, 'a', NaN, null])
    assert.throws(() => agent.decide(oslo, { seed }), sentence('seed', /^seed must be a whole number/))
  for (const within of [[1, 2], [20, 10], [20], 'a', { a: 1 }, [10, Infinity], [NaN, 20]])
    assert.throws(() => agent.decide(oslo, { within }), sentence('within', /^within must /))
  assert.throws(() => agent.learn(oslo, decision, { loss: 1 }), sentence('loss', /^loss must not be given to an agent made with rewards/))
  assert.throws(() => agent.learn(oslo, decision, {}), sentence('reward', /^pass \{reward/))
  assert.throws(() => agent.learn(oslo, decision, { reward: 51 }), sentence('reward', /^reward must be in \[0, 50\], got 51/))
  assert.throws(() => agent.learn(oslo, null, { reward: 1 }), sentence('decision', /^decision must be/))
  assert.throws(() => agent.learn(oslo, { ...decision, action: 50 }, { reward: 1 }), sentence('action', /^action must be in \[5, 40\]/))
  assert.throws(() => agent.learn(oslo, { ...decision, density: 0 }, { reward: 1 }), sentence('density', /^density must be in/))
  for (const context of [[1], 7, 'text', { city: 7 }, { age: Infinity }, { age: () => 1 }, { age: 'text' }, { city: '\ud800' }, { a: { $date: 'x' } }])
    assert.throws(() => agent.decide(context), sentence('context', /\.$/))
  const endless = {}
  endless.self = endless
  assert.throws(() => agent.decide(endless), sentence('context', /^context must be nested at most 32 levels deep; field 'self'/))
  assert.deepEqual(agent.save(), before)
})

test('ten thousand refused calls need no more memory', async () => {
  const agent = await load(bytes)
  const fail = () => assert.throws(() => agent.decide({ city: 7, age: 'text', tags: ['a'.repeat(1000)] }), InputError)
  const size = () => agent.save().length
  fail()
  const before = size()
  for (let i = 0; i < 10_000; ++i) fail()
  assert.equal(size(), before)
  assert.equal(agent.decide(oslo).action, (await load(bytes)).decide(oslo).action)
})

test('dates, missing values and rows of other types are read as JSON would be', async () => {
  const decide = async (context) => (await load(bytes, { copy: 'the-same' })).decide(context)
  const same = async (one, other) => assert.deepEqual(await decide(one), await decide(other))
  await same({ at: new Date('2024-02-29T12:30:00.250Z') }, { at: { $date: '2024-02-29T12:30:00.250+00:00' } })
  await same({ city: 'Oslo', age: NaN }, { city: 'Oslo', age: null })
  await same({ city: 'Oslo', age: undefined }, { city: 'Oslo' })
  await same({ city: 'Oslo', age: 31n }, { city: 'Oslo', age: 31 })
})

test('a saved agent decides like the one that was saved', async () => {
  const agent = await load(bytes)
  for (let i = 0; i < 20; ++i) agent.learn(oslo, agent.decide(oslo), { reward: i })
  const again = await load(agent.save())
  assert.notEqual(again.model, agent.model)
  assert.equal(again.decide(oslo).action, agent.decide(oslo).action)
})
