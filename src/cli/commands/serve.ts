import type { Command } from 'commander'
import { DEFAULTS } from '../../core/defaults.js'
import { durationText } from '../../time/duration.js'

const { server: SERVER, serve: SERVE } = DEFAULTS

export function serveCommand(command: Command): Command {
  return command
    .option('--store <where>', `postgres://…, redis://… or a file (${SERVE.store})`)
    .option('--schema <name>', 'the Postgres schema, or what Redis keys begin with')
    .option('--migrate', 'make the tables first, or bring them up to date')
    .option('--host <address>', `where to listen (${SERVE.host})`)
    .option('--port <number>', `where to listen (${SERVE.port}; 0 takes a free one)`)
    .option('--roles <list>', 'of api, tick and run (all of them)')
    .option('--auth <how>', 'tokens or none (none on this machine alone)')
    .option('--hosts <list>', 'names that this service is asked by')
    .option('--origins <list>', 'sites whose pages may log in and change things')
    .option('--proxies <list>', 'addresses of proxies in front of it')
    .option('--open-metrics', 'let /metrics be read without a token')
    .option('--log <format>', 'text or json (text)')
    .option('--log-level <level>', 'debug, info, warn or error (info)')
    .option('--grace <duration>', `how long ending may take (${durationText(SERVE.graceMs)})`)
    .option('--max-body <bytes>', `of a request (${SERVER.bodyBytes})`)
    .option('--max-batch <count>', `schedules or runs in one request (${SERVER.batch})`)
    .option('--rate <count>', `requests a second with one token (${SERVER.requestsPerSecond})`)
    .option('--address-rate <count>', `requests a second from one address (${SERVE.requestsPerSecondOfAddress})`)
    .option('--guess-rate <count>', `wrong tokens a second from one address (${SERVE.wrongTokensPerSecond})`)
    .option('--app <name>', 'the app that this process belongs to')
    .option('--release <name>', 'the release that it belongs to')
    .option('--config <file>', 'JSON, YAML or code (belfry.config.*)')
    .addHelpText(
      'after',
      `
Every setting can stand in the config file ("logLevel"), in the environment
(BELFRY_LOG_LEVEL) or here; the last of these counts most. Sinks stand in the
config file alone.

On 127.0.0.1 nobody has to log in. Anywhere else it takes tokens: make the
first with belfry token create --role admin.

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
      const file = await configFile(flags, process.env)
      const settings = serveSettings({ flags, env: process.env, file })
      const { runServe } = await import('../serve/run-serve.js')
      await runServe(settings)
    })
}
