import type { CommandNode } from './completion-script.js'

export function bashScript(nodes: readonly CommandNode[]): string {
  const words = nodes.map(({ path, commands, choices, options }) => {
    const all = [...commands.map(({ text }) => text), ...choices, ...options.map(({ text }) => text)]
    return `    '${path}') words='${all.join(' ')}' ;;`
  })
  const values = nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ text, short, choices }) => {
        const names = [text, ...(short === undefined ? [] : [short])].map((name) => `'${path} ${name}'`)
        return `    ${names.join('|')}) values='${choices.join(' ')}'; valued=1 ;;`
      }),
  )
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`)
  return `# Completion of belfry for bash.
_belfry() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' words='' values='' valued='' word
  # bash splits --state=paused into three words.
  if [ "$cur" = '=' ]; then cur=''; elif [ "$prev" = '=' ]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
    ${paths.join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path $prev" in
${values.join('\n')}
  esac
  if [ -n "$valued" ]; then
    if [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$cur")); else COMPREPLY=($(compgen -f -- "$cur")); fi
    return
  fi
  case "$path" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$cur")); fi
}
complete -F _belfry belfry
`
}
