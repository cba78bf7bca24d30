# Completion of abdada, ttserver and ttworker for bash: options and commands are those that --help lists.
_abdada()
{
    local cur prev words cword
    _init_completion -n : || return

    # abdada COMMAND [WORD]...: what may come is what `abdada COMMAND --help` says.
    local names='' command=''
    if [[ ${1##*/} == abdada ]]; then
        if [[ $cword -eq 1 ]]; then
            names=$("$1" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
        else
            command=${words[1]}
            [[ $cword -gt 2 ]] || # the usage of some has words of their own: [ask|peek | stats]
                names=$("$1" "$command" --help 2>/dev/null | sed -n '1s/Usage: abdada [a-z]*//p' |
                    tr '[]| ' '\n' | grep -x '[a-z]*')
        fi
    fi
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W '$(_parse_help "$1" "$command --help")' -- "$cur"))
    elif [[ -n $names && $prev != -* ]]; then
        COMPREPLY=($(compgen -W '$names' -- "$cur"))
    else
        _filedir
    fi
} && complete -F _abdada abdada ttserver ttworker
