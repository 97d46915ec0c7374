import type { CommandNode } from './completion-script.js'

export function zshScript(nodes: readonly CommandNode[]): string {
  const cases = nodes.map(({ path, commands, options, choices }) => {
    const names = [...commands, ...choices.map((text) => ({ text, about: '' }))]
    const lines = names.map(({ text, about }) => `      ${quoted(about === '' ? text : `${text}:${about}`)}`)
    const flags = options.flatMap(({ text, short, about, takesValue, choices: values }) => {
      const value = takesValue ? `: :${values.length > 0 ? `(${values.join(' ')})` : '_files'}` : ''
      const what = `[${about.replaceAll(/[[\]]/g, '')}]${value}`
      const names = short === undefined ? [text] : [`(${short} ${text})${text}`, `(${short} ${text})${short}`]
      return names.map((name) => `      ${quoted(`${name}${what}`)}`)
    })
    return `  ${quoted(path)})
    names=(
${lines.join('\n')}
    )
    flags=(
${flags.join('\n')}
    )
    ;;`
  })
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => quoted(path))
  return `#compdef belfry
# Completion of belfry for zsh.
_belfry() {
  local place='' word
  local -a names flags
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    case "\${place:+$place }$word" in
    ${paths.join('|')}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
  if [[ "\${words[CURRENT]}" != -* ]] && (( \${#names} )); then
    _describe 'belfry' names
  else
    _arguments "\${flags[@]}" '*:file:_files'
  fi
}
if [[ "$funcstack[1]" == _belfry ]]; then _belfry "$@"; else compdef _belfry belfry; fi
`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
