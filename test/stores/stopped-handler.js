// @ts-check
/**
 * A process whose handler writes in its transaction, prints a line, and waits for input before it commits. The last
 * line is the outcome of the transaction.
 */
import { once } from 'node:events'
import { createBelfry } from '../../dist/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'

const [url = '', schema = '', table = ''] = process.argv.slice(2)
const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const belfry = createBelfry({ store: postgres({ url, schema }), lease: '1s', logger: quiet })

belfry.job('pay', {
  exclusive: true,
  run: ({ run, transaction }) =>
    transaction(async (/** @type {import('../../dist/stores/postgres/index.js').PostgresTransaction} */ tx) => {
      await tx.query(`insert into ${table} (what) values ($1)`, [`attempt ${run.attempt}`])
      process.stdout.write('written\n')
      await once(process.stdin, 'data')
      return run.attempt
    }).then(
      () => process.stdout.write('committed\n'),
      (error) => process.stdout.write(`${error.code}\n`),
    ),
})

await belfry.start()
