import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { failure } from '../../core/errors.js'

export function webhookSecretCommand(command: Command): void {
  command
    .argument('<url>', 'the URL that schedules name as toOptions.url')
    .addHelpText(
      'after',
      `
It reads the secret of a webhook sink from standard input. From a whsec_… it
derives the secret of all receivers at the URL's origin, from a whsk_… the
public key of all receivers. What it prints may go to the receiver's owner.

Examples:
  printenv HOOK_SECRET | belfry webhook-secret https://shop.example/hooks`,
    )
    .action(async (url: string) => {
      if (process.stdin.isTTY) throw failure('OPTION_INVALID', 'pipe the secret of the sink to standard input')
      const { receiverSecret } = await import('../../sinks/webhook/signature.js')
      const secret = (await text(process.stdin)).trim()
      process.stdout.write(`${receiverSecret(secret, url)}\n`)
    })
}
