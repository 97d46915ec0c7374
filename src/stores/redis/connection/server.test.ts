import { expect, it } from 'vitest'
import { manualClock } from '../../../testing/manual-clock.js'
import type { Link } from './driver.js'
import { luaScript } from './lua-script.js'
import { Server } from './server.js'

it('a script that turns out to be unknown after it was given up is not sent again, because its caller has been answered', async () => {
  const sent: string[] = []
  let refuse = (_: Error) => {}
  const link = {
    isCluster: false,
    doubt: () => {},
    send: (_: string, [command = '']: readonly string[]) => {
      sent.push(command)
      return new Promise((_resolve, reject) => {
        refuse = reject
      })
    },
  } as unknown as Link
  const clock = manualClock()
  const server = new Server({
    link,
    clock,
    prefix: 'b:',
    timeoutMs: 1_000,
    waitReplicas: 0,
    clockKind: 'server',
  })
  server.useShards(['{b}'])
  const given = server
    .call(luaScript({ name: 'test', source: 'return 1', takes: {}, gives: {} }), 0, {})
    .catch((error: unknown) => error)
  await clock.advance(2_000)
  expect(await given).toMatchObject({ code: 'STORE_UNREACHABLE' })
  refuse(new Error('NOSCRIPT No matching script'))
  await clock.advance(2_000)
  expect(sent).toEqual(['EVALSHA'])
})
