// @ts-check
/**
 * A process on the built package that delivers to a sink until it is killed. It prints a line when it has handed a
 * batch to the sink, before the sink has answered.
 */
import { createBelfry } from '../../dist/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

/** @type {{ file: string, sink: string, make: string, options: object }} */
const { file, sink: path, make, options } = JSON.parse(process.argv[2] ?? '')
const sink = (await import(new URL(`../../dist/sinks/${path}`, import.meta.url).href))[make](options)

const belfry = createBelfry({
  store: sqlite({ path: file }),
  sinks: {
    out: {
      ...sink,
      /** @type {import('../../dist/core/sink.js').Sink['deliver']} */
      deliver(messages, signal) {
        const answer = sink.deliver(messages, signal)
        process.stdout.write('handed over\n')
        return answer
      },
    },
  },
  lease: '1s',
  poll: '50ms',
})
await belfry.start()
