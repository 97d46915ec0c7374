import type { Command } from 'commander'
import { DEFAULTS } from '../../core/defaults.js'
import { durationText } from '../../time/duration.js'

const { server: SERVER, serve: SERVE } = DEFAULTS

export function serveCommand(command: Command): Command {
  return command
    .option('--store <where>', `postgres://…, redis://… or a file (${SERVE.store})`)
    .option('--schema <name>', 'the Postgres schema, or the prefix of Redis keys')
    .option('--migrate', 'create or update the tables first')
    .option('--host <address>', `address to listen on (${SERVE.host})`)
    .option('--port <number>', `port to listen on (${SERVE.port}; 0 for a free one)`)
    .option('--roles <list>', 'some of api, tick and run (all)')
    .option('--auth <how>', 'tokens or none (none on 127.0.0.1 only)')
    .option('--hosts <list>', 'allowed Host header values')
    .option('--origins <list>', 'other origins of the same site whose pages may read and make changes')
    .option('--proxies <list>', 'addresses of trusted proxies')
    .option('--open-metrics', 'serve /metrics without a token')
    .option('--log <format>', 'text or json (text)')
    .option('--log-level <level>', 'debug, info, warn or error (info)')
    .option('--grace <duration>', `time for a graceful shutdown (${durationText(SERVE.graceMs)})`)
    .option('--max-body <bytes>', `largest request body (${SERVER.bodyBytes})`)
    .option('--max-batch <count>', `schedules or runs in one request (${SERVER.batch})`)
    .option('--rate <count>', `requests a second with one token (${SERVER.requestsPerSecond})`)
    .option('--cpu-rate <ms>', `milliseconds of CPU a second for one token (${SERVER.cpuMsPerSecond})`)
    .option('--max-connections <count>', `connections at once (${SERVE.maxConnections})`)
    .option('--address-rate <count>', `requests a second from one address (${SERVE.requestsPerSecondOfAddress})`)
    .option('--guess-rate <count>', `invalid tokens a second from one address (${SERVE.wrongTokensPerSecond})`)
    .option('--app <name>', 'the app of this process')
    .option('--release <name>', 'the release of this process')
    .option('--config <file>', 'JSON, YAML or code (belfry.config.*)')
    .addHelpText(
      'after',
      `
Every setting has a name in the config file ("logLevel"), in the environment
(BELFRY_LOG_LEVEL) and here; an option overrides the environment, and that
overrides the file. Sinks are set in the config file only.

On 127.0.0.1 no token is needed. On any other address one is: create the first
with belfry token create --role admin.

Examples:
  belfry serve
  belfry serve --store postgres://app@db.example/app --migrate --port 8080
  belfry serve --config /etc/belfry.json --host 0.0.0.0 --log json`,
    )
    .action(async (flags: Record<string, unknown>) => {
      const [{ configFile }, { serveSettings }] = await Promise.all([
        import('../settings/config-file.js'),
        import('../settings/serve-settings.js'),
      ])
      const file = await configFile(flags, process.env, 'own')
      const settings = serveSettings({ flags, env: process.env, file })
      const { runServe } = await import('../serve/run-serve.js')
      await runServe(settings)
    })
}
