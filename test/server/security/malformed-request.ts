/** Generates almost valid HTTP requests, none of which may change anything. */
import type { Random } from '../../../src/testing/index.js'

const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'QUERY',
  'get',
  'POST ',
  '',
  '\x16\x03',
] as const
const PATHS = [
  '/v1/schedules',
  '/v1/schedules/billing%2F1',
  '/v1/schedules/billing%2F1/pause',
  '/v1/schedules/billing%2F1/trigger',
  '/v1/schedules/billing%2F1/ticks?from=x&to=%00',
  '/v1/schedules:apply',
  '/v1/schedules:import',
  '/v1/runs',
  '/v1/runs/%00',
  '/v1/locks/a',
  '/v1/freeze',
  '/v1/session',
  '/v1/audit?limit=-1',
  '/v1/events',
  '/metrics?x[]=1',
  '/%',
  '/..%2f..%2f',
  '*',
  '//',
  '/v1/\u00ff',
  'http://[',
  '/?__proto__[x]=1&__proto__=2',
] as const
const HEADERS = [
  'Content-Length: 5',
  'Content-Length: 99999999999999999999',
  'Content-Length: 0x10',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, chunked',
  'Content-Type: application/json',
  'Content-Type: application/x-ndjson',
  'Content-Type: application/json; charset=\x80',
  'Content-Encoding: gzip',
  'Authorization: Bearer',
  'Authorization: Bearer \x01',
  'Authorization: Digest username="a"',
  'Cookie: belfry_session=; belfry_session=x',
  'Cookie: =;;=',
  'If-Match: W/"',
  'If-None-Match: *',
  'Idempotency-Key: \x7f',
  'Last-Event-ID: -1',
  'Origin: https://evil.example',
  'Range: bytes=0-',
  'Expect: 100-continue',
  'X-Forwarded-For: ,,,',
  ': empty',
  'no colon',
  'X: \r',
] as const
const BODIES = [
  '',
  '{',
  '{}',
  'null',
  '{"__proto__":{"a":1}}',
  '{"id":"billing/1","every":-1}',
  '{"id":"\u0000"}',
  '[[[[[[[[[[[[[[[[',
  '5\r\nhello\r\n0\r\n\r\n',
  'ffffffff\r\n',
  '-1\r\n',
  '\x1f\x8b\x08\x00',
  '{"cron":"* * * * * * * *","job":1}',
  '{"every":"1h","job":{"toString":1}}',
] as const

const VERSIONS = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/9', ''] as const
const HOSTS = ['Host: 127.0.0.1', 'Host: 127.0.0.1', 'Host: evil.example', 'Host: ', '', 'Host: a b'] as const
const ENDS = ['\r\n', '\r\n', '\r\n', '\n', '\r'] as const

/** Sends one of the credential headers, none of which permits a change. */
export function malformedRequest(random: Random, credentials: readonly [string, ...string[]]): Buffer {
  const lines = [`${random.pick(METHODS)} ${random.pick(PATHS)} ${random.pick(VERSIONS)}`, random.pick(HOSTS)]
  lines.push(random.pick(credentials))
  for (let count = random.integer(0, 5); count > 0; count -= 1) lines.push(random.pick(HEADERS))
  const end = random.pick(ENDS)
  const bytes = Buffer.from(`${lines.join(end)}${end}${end}${random.pick(BODIES)}`, 'latin1')
  for (let flips = random.integer(0, 2); flips > 0; flips -= 1) {
    bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255)
  }
  return random.chance(0.2) ? bytes.subarray(0, random.integer(0, bytes.length)) : bytes
}
