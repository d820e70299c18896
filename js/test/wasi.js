// As much of WASI as tests/golden.cpp needs, in Node and in browsers: it prints.
export async function run(bytes) {
  let printed = ''
  let memory
  const decoder = new TextDecoder()
  const wasi = {
    fd_write(file, vectors, count, written) {
      const view = new DataView(memory.buffer)
      let total = 0
      for (let i = 0; i < count; ++i) {
        const [start, size] = [view.getUint32(vectors + 8 * i, true), view.getUint32(vectors + 8 * i + 4, true)]
        if (file === 1) printed += decoder.decode(new Uint8Array(memory.buffer, start, size))
        total += size
      }
      view.setUint32(written, total, true)
      return 0
    },
    environ_sizes_get(count, size) {
      const view = new DataView(memory.buffer)
      view.setUint32(count, 0, true)
      view.setUint32(size, 0, true)
      return 0
    },
    environ_get: () => 0,
    fd_close: () => 0,
    fd_seek: () => 70,
    fd_fdstat_get: () => 0,
    proc_exit(status) {
      throw new Error(`exit ${status}`)
    },
  }
  const { instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: wasi })
  memory = instance.exports.memory
  instance.exports._start()
  return printed
}
