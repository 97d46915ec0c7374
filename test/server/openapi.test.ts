import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import { createTestBelfry } from '../../src/testing/index.js'
import { answerCheck, checkedServer } from './checked-server.js'

it('is a valid OpenAPI 3.1 document', async () => {
  const { belfry } = createTestBelfry()
  const { document } = await checkedServer(belfry, { basePath: '/api' })
  const result = await new Validator().validate({ ...structuredClone(document) })
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
  expect(document).toMatchObject({ openapi: '3.1.0', servers: [{ url: '/api' }] })
})

it('names every operation once, and every schema that it references', async () => {
  const { belfry } = createTestBelfry()
  const { document } = await checkedServer(belfry)
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
  const ids = operations.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)]
  expect(references.length).toBeGreaterThan(20)
  for (const [, name = ''] of references) expect(document.components.schemas).toHaveProperty(name)
})

it('is compared with every answer: a mismatch is detected', async () => {
  const { belfry } = createTestBelfry()
  const { document } = await checkedServer(belfry)
  const check = answerCheck(document, '')
  const request = new Request('http://localhost/healthz')
  const json = (body: unknown, status = 200) =>
    new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
  await expect(check(request, json({ status: 'ok' }))).resolves.toBe('getHealth')
  await expect(check(request, json({ status: 'fine' }))).rejects.toThrow('does not fit')
  await expect(check(request, json({ status: 'ok', more: 1 }))).rejects.toThrow('does not fit')
  await expect(check(request, json({ status: 'ok' }, 201))).rejects.toThrow('no such answer')
  await expect(check(request, json({ code: 'X' }, 400))).rejects.toThrow('not described')
  const id = new Request('http://localhost/v1/schedules/x')
  await expect(check(id, json({}))).rejects.toThrow('the header ETag is missing')
})
