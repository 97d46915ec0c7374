import type { Given } from './config.js'
import { type ConfigFile, configFile } from './config-file.js'

/** What a command is given: flags, the environment, and the config file if there is one. */
export async function givenTo(flags: Given['flags']): Promise<Given & { readonly file: ConfigFile | undefined }> {
  return { flags, env: process.env, file: await configFile(flags, process.env) }
}
