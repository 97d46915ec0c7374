import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from '../servers/server-url.js'
import { effectsTable } from './effects-table.js'

const PROGRAM = fileURLToPath(new URL('stopped-handler.js', import.meta.url))

it('a process that is stopped in its transaction past its lease cannot commit when it continues', async () => {
  const url = await serverUrl('postgres')
  const schema = `stopped_${process.pid}`
  const table = await effectsTable()
  await migratePostgres({ url, schema })
  const stopped = spawn(process.execPath, [PROGRAM, url, schema, table.name], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(stopped.stdout)
  const belfry = createBelfry({ store: postgres({ url, schema }), lease: '1s' })
  let others = 0
  const job = belfry.job('pay', {
    exclusive: true,
    run: ({ run, transaction }) => {
      others += 1
      return transaction(async (tx: { query(sql: string, values: unknown[]): Promise<unknown> }) => {
        await tx.query(`insert into ${table.name} (what) values ($1)`, [`attempt ${run.attempt}`])
        return run.attempt
      })
    },
  })
  try {
    const written = once(lines, 'line')
    const { run } = await job.enqueue(undefined)
    expect(await written).toEqual(['written'])
    stopped.kill('SIGSTOP')
    await belfry.start()
    await expect.poll(async () => (await belfry.runs.get(run))?.state, { timeout: 15_000 }).toBe('succeeded')
    const said = once(lines, 'line')
    stopped.stdin.write('go on\n')
    stopped.kill('SIGCONT')
    // The store refuses the commit, or the process itself notices first.
    expect(await said).toEqual([expect.toBeOneOf(['STALE', 'LEASE_LOST'])])
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'succeeded', result: 2, attempt: 2 })
    expect(await table.effects()).toEqual(['attempt 2'])
    expect(others).toBe(1)
  } finally {
    stopped.kill('SIGKILL')
    await belfry.stop()
    const pool = new pg.Pool({ connectionString: url })
    await pool.query(`drop schema ${schema} cascade`)
    await pool.end()
    await table.drop()
  }
})
