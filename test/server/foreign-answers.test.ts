/** What a user of the client reads when the URL is wrong, or when another program answers there. */
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createClient, ServiceError } from '../../src/client/index.js'

const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()))
})

async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

const html =
  (status: number, title: string): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' })
    response.end(`<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>`)
  }

async function refusal(url: string): Promise<ServiceError> {
  const error = await createClient({ url })
    .stats()
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
  if (error instanceof ServiceError) return error
  throw new Error(`expected a ServiceError, got ${error instanceof Error ? error.stack : String(error)}`)
}

describe('an answer of another program', () => {
  it.each<[string, RequestListener, number, RegExp]>([
    [
      'a page',
      html(200, 'Welcome to nginx!'),
      200,
      /^another program than Belfry answered http.*\/v1\/stats: 200 \(text\/html\), "Welcome to nginx!"$/,
    ],
    [
      'a proxy without its service',
      html(502, '502 Bad Gateway'),
      502,
      /^a proxy that cannot reach the service answered .*: 502 \(text\/html\), "502 Bad Gateway"$/,
    ],
    ['an empty body', (_, response) => void response.end(), 200, /200 \(no content type\) with an empty body$/],
    [
      'JSON of another service',
      (_, response) => void response.setHeader('content-type', 'application/json').end('{"status":"up"}'),
      200,
      /200 \(application\/json\), "\{"status":"up"\}"$/,
    ],
    [
      'JSON that looks like a problem',
      (_, response) => void response.writeHead(403, { 'content-type': 'application/json' }).end('{"code":"rbac"}'),
      403,
      /403 \(application\/json\)/,
    ],
  ])('is named as such: %s', async (_, listener, status, message) => {
    const port = await listening(createHttpServer(listener))
    const error = await refusal(`http://127.0.0.1:${port}`)
    expect(error).toMatchObject({ code: 'NOT_BELFRY', status, message: expect.stringMatching(message) })
    expect(error.problem.hint).toBeTruthy()
  })

  it('is not read to its end when it has none', async () => {
    const endless: RequestListener = (_, response) => {
      const timer = setInterval(() => response.write('lorem ipsum '.repeat(100)), 1)
      response.on('close', () => clearInterval(timer))
    }
    const port = await listening(createHttpServer(endless))
    expect((await refusal(`http://127.0.0.1:${port}`)).message.length).toBeLessThan(400)
  })
})

describe('a port that does not speak what the URL says', () => {
  it('speaks no HTTP', async () => {
    const port = await listening(createTcpServer((socket) => void socket.end('220 mail.example ESMTP\r\n')))
    const error = await refusal(`http://127.0.0.1:${port}`)
    expect(error).toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringMatching(/does not speak HTTP: check the port/),
    })
  })

  it('closes every connection', async () => {
    const port = await listening(createTcpServer((socket) => void socket.once('data', () => socket.destroy())))
    const error = await refusal(`http://127.0.0.1:${port}`)
    expect(error).toMatchObject({ code: 'UNREACHABLE', message: expect.stringMatching(/closed without an answer/) })
  })

  it('does not speak TLS', async () => {
    const port = await listening(createHttpServer(html(200, 'plain')))
    const error = await refusal(`https://127.0.0.1:${port}`)
    expect(error).toMatchObject({ code: 'UNREACHABLE', message: expect.stringMatching(/write the URL with http:\/\//) })
  })

  it('speaks TLS', async () => {
    const port = await listening(createHttpsServer(html(200, 'TLS')))
    const error = await refusal(`http://127.0.0.1:${port}`)
    expect(error).toMatchObject({ code: 'UNREACHABLE', message: expect.stringMatching(/whether it wants https:\/\//) })
  })

  it('says itself that it speaks TLS', async () => {
    const port = await listening(createHttpServer(html(400, '400 The plain HTTP request was sent to HTTPS port')))
    const { problem } = await refusal(`http://127.0.0.1:${port}`)
    expect(problem).toMatchObject({ code: 'NOT_BELFRY', hint: expect.stringMatching(/write the URL with https:\/\//) })
  })
})

describe('the URL of a service', () => {
  it('needs no scheme on this machine', async () => {
    const port = await listening(createHttpServer(html(200, 'here')))
    expect((await refusal(`127.0.0.1:${port}`)).message).toContain(`http://127.0.0.1:${port}/v1/stats`)
    expect((await refusal(`127.0.0.1:${port}/base/`)).message).toContain(`http://127.0.0.1:${port}/base/v1/stats`)
  })

  it.each([
    [
      'cron.example.com',
      /"cron.example.com" is not the URL .* http:\/\/cron.example.com or https:\/\/cron.example.com$/,
    ],
    ['cron.example.com:7420/api', /write it as http:\/\/cron.example.com:7420\/api or https:/],
    ['ftp://cron.example.com', /"ftp:\/\/cron.example.com" is not the URL of a service: write it as http:\/\/127/],
    ['http:/cron', /is not the URL of a service/],
    ['', /"" is not the URL of a service/],
    ['/belfry', /"\/belfry" is not the URL of a service/],
    ['http://me:geheim@cron.example.com', /the URL of cron.example.com holds a user name or password: give a token/],
    ['postgres://me:geheim@db/x', /"postgres:\/\/…@db\/x" is not the URL/],
    ['http://cron.example.com/?a=1', /ends in a query or fragment/],
  ])('is refused with the URL and what to write: %j', (url, message) => {
    const thrown = (() => {
      try {
        return createClient({ url })
      } catch (error) {
        return error
      }
    })()
    expect(thrown).toMatchObject({ code: 'OPTION_INVALID', message: expect.stringMatching(message) })
    expect((thrown as Error).message).not.toContain('geheim')
  })
})
