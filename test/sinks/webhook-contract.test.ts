import { webhook } from '../../src/sinks/webhook/index.js'
import { type ReceivedMessage, sinkContract } from '../../src/testing/sink-contract.js'
import { type Request, TestReceiver } from './receiver.js'

function received({ headers, body }: Request): ReceivedMessage {
  return {
    ...(JSON.parse(body) as Omit<ReceivedMessage, 'attempt' | 'token'>),
    attempt: Number(headers['belfry-attempt']),
    token: Number(headers['belfry-token']),
  }
}

sinkContract({
  name: 'webhook',
  open: async () => {
    const receiver = await new TestReceiver().start()
    receiver.reply = ({ body }, response) => response.writeHead(body.length > 200_000 ? 413 : 204).end()
    const at = (path: string) => receiver.requests.filter(({ url }) => url === path).map(received)
    return {
      sink: webhook({
        url: receiver.url,
        allow: ['127.0.0.0/8'],
        overrides: { url: [`http://127.0.0.1:${receiver.port}/other`] },
      }),
      received: async () => at('/hook'),
      down: () => receiver.stop(),
      up: async () => void (await receiver.start()),
      elsewhere: { options: { url: `http://127.0.0.1:${receiver.port}/other` }, arrived: async () => at('/other') },
      badOptions: [{ url: 'ftp://example.com' }, { topic: 'orders' }, { headers: { 'content-length': '7' } }],
      tooLarge: 'x'.repeat(210_000),
      close: () => receiver.stop(),
    }
  },
})
