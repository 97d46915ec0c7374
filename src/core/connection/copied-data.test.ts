import { expect, it } from 'vitest'
import { copyData } from './copied-data.js'

const NOTHING = new Set<string>()

it('copies plain data, including non-enumerable members, without the named ones', () => {
  const options = { host: 'h', ssl: { ca: Buffer.from('ca') }, hosts: ['a', { port: 1 }], max: 10 }
  Object.defineProperty(options.ssl, 'key', { value: 'secret', enumerable: false })
  const { value, strange } = copyData(options, new Set(['max']))
  expect(strange).toEqual([])
  expect(value).toEqual({
    ...{ host: 'h', hosts: ['a', { port: 1 }] },
    ssl: { ca: new Uint8Array(Buffer.from('ca')), key: 'secret' },
  })
})

it('names a member that cannot be copied', () => {
  const options = { password: () => 'p', ssl: { checkServerIdentity: () => undefined }, list: [Symbol('s')] }
  expect(copyData(options, NOTHING).strange).toEqual(['password', 'ssl.checkServerIdentity', 'list[0]'])
})
