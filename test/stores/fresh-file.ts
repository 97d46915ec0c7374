import type { Store } from '../../src/core/store.js'
import { openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { type SqliteHandle, sqlite } from '../../src/stores/sqlite/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { InterruptedWrite, withMethods } from '../servers/interrupted-write.js'
import { temporaryFile } from './temporary-file.js'

const WRITES = /^\s*(insert|update|delete)/i

type Statement = ReturnType<SqliteHandle['prepare']>

/**
 * A handle that lets other operations begin before its first write. The handle is synchronous and cannot wait for them:
 * they continue when it yields, or after its transaction.
 */
function interruptedHandle(path: string, write: InterruptedWrite): { handle: SqliteHandle; close: () => void } {
  const handle = openDriver(path).handle as SqliteHandle
  const prepare = (sql: string): Statement => {
    const statement = handle.prepare(sql)
    if (!WRITES.test(sql)) return statement
    const interrupted =
      (method: (...values: never[]) => unknown) =>
      (...values: never[]) => {
        void write.beforeWrite()
        return method.apply(statement, values)
      }
    // A write that returns rows runs by `get` or `all`.
    const { run, get, all } = statement
    return withMethods(statement, {
      run: interrupted(run),
      get: interrupted(get),
      all: interrupted(all),
    } as Partial<Statement>)
  }
  return { handle: withMethods(handle, { prepare } as Partial<SqliteHandle>), close: () => handle.close() }
}

export interface FreshFile {
  readonly store: Store
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  close(): Promise<void>
}

/** A store on a new file, with a clock that the test advances. */
export function freshFile(): FreshFile {
  const clock = manualClock()
  const file = temporaryFile()
  const write = new InterruptedWrite()
  let close = () => {}
  const open = async () => {
    const opened = interruptedHandle(file.path, write)
    close = opened.close
    return sqlite({ database: opened.handle, clock })
  }
  return {
    store: sqlite({ path: file.path, clock }),
    elapse: clock.advance,
    interrupt: write.interrupt(open),
    async close() {
      await write.close()
      close()
      await file.remove()
    },
  }
}
