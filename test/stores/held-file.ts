import { openDriver } from '../../src/stores/sqlite/connection.js'
import type { SqliteHandle } from '../../src/stores/sqlite/index.js'
import { type HeldWrite, replacing } from '../servers/held-write.js'

const WRITES = /^\s*(insert|update|delete)/i

type Statement = ReturnType<SqliteHandle['prepare']>

/**
 * A handle that lets others begin before its first write. It cannot wait for them, because it is synchronous: they go on
 * when it gives up its turn, or has ended its transaction.
 */
export function heldHandle(path: string, held: HeldWrite): { handle: SqliteHandle; close: () => void } {
  const handle = openDriver(path).handle as SqliteHandle
  const prepare = (sql: string): Statement => {
    const statement = handle.prepare(sql)
    if (!WRITES.test(sql)) return statement
    return replacing(statement, {
      run(...values: never[]) {
        void held.pass()
        return (statement.run as (...values: never[]) => ReturnType<Statement['run']>)(...values)
      },
    })
  }
  return { handle: replacing(handle, { prepare } as Partial<SqliteHandle>), close: () => handle.close() }
}
