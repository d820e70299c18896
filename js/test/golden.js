// Prints the golden hashes of the core.
import { readFileSync } from 'node:fs'
import { run } from './wasi.js'

process.stdout.write(await run(readFileSync(new URL('../dist/golden.wasm', import.meta.url))))
