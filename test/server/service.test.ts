import { expect, it } from 'vitest'
import { silentLogger } from '../../src/core/logger.js'
import { createServer } from '../../src/server/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

it('answers under any base path, and only there', async () => {
  const { belfry } = createTestBelfry()
  await belfry.start()
  const { fetch } = createServer(belfry, { basePath: '/team/belfry' })
  expect((await fetch(new Request('http://localhost/team/belfry/healthz'))).status).toBe(200)
  expect((await fetch(new Request('http://localhost/team/belfry/readyz'))).status).toBe(200)
  const stranger = await fetch(new Request('http://localhost/healthz'))
  expect(stranger.status).toBe(404)
  await belfry.stop()
})

it('names the methods of a path', async () => {
  const { belfry } = createTestBelfry()
  await belfry.start()
  const answer = await createServer(belfry).fetch(new Request('http://localhost/healthz', { method: 'DELETE' }))
  expect(answer.status).toBe(405)
  expect(answer.headers.get('allow')).toBe('GET, HEAD')
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(await answer.json()).toMatchObject({ code: 'METHOD_NOT_ALLOWED', status: 405, instance: '/healthz' })
  await belfry.stop()
})

it('logs paths without their query strings', async () => {
  const { belfry } = createTestBelfry()
  await belfry.start()
  const paths: unknown[] = []
  const logger = { ...silentLogger, info: (fields: object) => paths.push('path' in fields && fields.path) }
  const { fetch } = createServer(belfry, { logger })
  for (const end of ['?prefix=secret', '#secret', '?prefix=a#secret', '/a%2Fb?x=secret', '']) {
    await fetch(new Request(`http://localhost/v1/schedules${end}`))
  }
  expect(paths).toEqual(['/v1/schedules', '/v1/schedules', '/v1/schedules', '/v1/schedules/a%2Fb', '/v1/schedules'])
  await belfry.stop()
})
