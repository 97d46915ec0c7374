import type { CommandNode } from './completion-script.js'

export function fishScript(nodes: readonly CommandNode[]): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => quoted(path))
  const lines = nodes.flatMap(({ path, commands, options, choices }) => {
    const when = `-n ${quoted(`test (__belfry_place) = ${quoted(path)}`)}`
    return [
      ...commands.map(({ text, about }) => `complete -c belfry -f ${when} -a ${text} -d ${quoted(about)}`),
      ...choices.map((text) => `complete -c belfry -f ${when} -a ${text}`),
      ...options.map(({ text, short, about, takesValue, choices: values }) => {
        const value = takesValue ? ` -r${values.length > 0 ? ` -f -a ${quoted(values.join(' '))}` : ''}` : ''
        const letter = short === undefined ? '' : ` -s ${short.slice(1)}`
        return `complete -c belfry ${when}${letter} -l ${text.replace(/^--/, '')} -d ${quoted(about)}${value}`
      }),
    ]
  })
  return `# Completion of belfry for fish.
function __belfry_place
  set -l place ''
  for word in (commandline -opc)[2..-1]
    set -l longer (string trim "$place $word")
    if contains -- $longer ${paths.join(' ')}
      set place $longer
    end
  end
  echo "$place"
end
${lines.join('\n')}
`
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
