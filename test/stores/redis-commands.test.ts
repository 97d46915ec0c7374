/**
 * Checks that the store sends only commands of Redis 6.2, because the tests have no server that old. The test finds in
 * the source every command that a script or the connection sends. The list below has the version of each command, and
 * the newer options that must not be used.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const FOLDER = join(import.meta.dirname, '../../src/stores/redis')

/** From Redis's documentation. */
const SINCE: Readonly<Record<string, string>> = {
  DEL: '1.0',
  EVAL: '2.6',
  EVALSHA: '2.6',
  EXISTS: '1.0',
  GET: '1.0',
  HDEL: '2.0',
  HEXISTS: '2.0',
  HGET: '2.0',
  HGETALL: '2.0',
  HKEYS: '2.0',
  HMGET: '2.0',
  HSET: '2.0',
  HLEN: '2.0',
  HSCAN: '2.8',
  HSETNX: '2.0',
  HVALS: '2.0',
  INCR: '1.0',
  INFO: '1.0',
  PUBLISH: '2.0',
  SADD: '1.0',
  SCARD: '1.0',
  SET: '1.0',
  SISMEMBER: '1.0',
  SMEMBERS: '1.0',
  SRANDMEMBER: '1.0',
  SREM: '1.0',
  SSCAN: '2.8',
  TIME: '2.6',
  TYPE: '1.0',
  WAIT: '3.0',
  ZADD: '1.2',
  ZCARD: '1.2',
  ZCOUNT: '2.0',
  ZLEXCOUNT: '2.8',
  ZRANGE: '1.2',
  ZRANGEBYLEX: '2.8',
  ZRANGEBYSCORE: '1.0',
  ZREM: '1.2',
  ZREMRANGEBYSCORE: '1.2',
  ZREVRANGE: '1.2',
  ZREVRANGEBYLEX: '2.8',
  ZREVRANGEBYSCORE: '2.2',
  ZSCORE: '1.2',
}

/** Options of these commands that were introduced in 7.0 or later. */
const TOO_NEW = /'(?:KEEPTTL|FNX|FXX|GT|LT|IFEQ|IFNE|IDLE|WITHSCORE|LIB|FUNCTION)'/

function sources(folder: string): readonly { readonly file: string; readonly text: string }[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sources(path)
    return entry.name.endsWith('.test.ts') ? [] : [{ file: entry.name, text: readFileSync(path, 'utf8') }]
  })
}

/** How the source names commands: in calls of scripts, in calls of shared Lua functions, and first in an array. */
const SENT = [/\bcall\('([A-Za-z]+)'/g, /(?:batch|readMany)\('([A-Za-z]+)'/g, /'(Z[A-Z]+BYLEX)'/g, /\['([A-Z]{3,})',/g]
/** The one call whose command is a variable. The patterns above find the commands that this variable may hold. */
const BY_NAME = 'call(command,'

it('the Redis store uses no command newer than Redis 6.2', () => {
  const used = new Map<string, string>()
  for (const { file, text } of sources(FOLDER)) {
    for (const pattern of SENT) {
      for (const [, command = ''] of text.matchAll(pattern)) used.set(command.toUpperCase(), file)
    }
    expect([file, TOO_NEW.exec(text)?.[0]]).toEqual([file, undefined])
    // Any other call by a variable could send any command.
    const unknown = text.replaceAll(BY_NAME, '').match(/redis\.p?call\((?!')[^)]*/)?.[0]
    expect([file, unknown]).toEqual([file, undefined])
  }
  expect(used.size).toBeGreaterThan(25)
  const strangers = [...used].filter(([command]) => SINCE[command] === undefined)
  expect(strangers).toEqual([])
  const tooNew = [...used.keys()].filter((command) => Number(SINCE[command]) > 6.2)
  expect(tooNew).toEqual([])
})
