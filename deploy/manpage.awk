# manpage.awk: a manual page whose options are those that the program itself lists.
#
#   awk -v program=bin/ttserver -v version=0.2.0 -f deploy/manpage.awk docs/ttserver.1.in
#
# The page is as it is written, but for @VERSION@ and for lines that stand for what --help says:
#   @SYNOPSIS@   the usage
#   @OPTIONS@    what it does, then the options; of a program with commands, these
#   @COMMANDS@   for each of the commands a part with its usage, what it does, and its options

# A line of text for roff: no dot begins it, a hyphen in an option is a minus sign, `words` are bold.
function roff(text)
{
    gsub(/\\/, "\\(rs", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    while (match(text, /`[^`]*`/))
        text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" \
            substr(text, RSTART + RLENGTH)
    return text ~ /^[.]/ ? "\\&" text : text
}

# "-s, --servers HOST:PORT,...": names are bold, the value is not.
function names(text,    i, n, word, out)
{
    n = split(text, word, " ")
    for (i = 1; i <= n; i++)
        out = out (i > 1 ? " " : "") (word[i] ~ /^[A-Z]/ ? "\\fI" : "\\fB") roff(word[i]) "\\fR"
    return out
}

# The usage; `what --help` has been read as far as that.
function usage(what,    line)
{
    if (((what " --help") | getline line) > 0 && line ~ /^Usage: /)
        return substr(line, 8)
    print "manpage.awk: " what " --help does not begin with its usage" >"/dev/stderr"
    exit failed = 1
}

# The rest of `what --help`. An option or a command is two blanks from what is said of it, or that is in the next line.
# Examples come last, each with its prompt, and are not filled.
function rest(what,    line, at, is_new, is_filled)
{
    is_filled = 1
    while (((what " --help") | getline line) > 0) {
        if (line == "Examples:") {
            is_filled = 0
            print ".PP\nExamples:\n.RS\n.nf"
            continue
        } else if (line ~ /^  (-.,|   ) --/ || line ~ /^  [a-z]/) {
            sub(/^ +/, "", line)
            at = match(line, line ~ /^-/ ? "  +" : " +") ? RSTART : length(line) + 1
            print ".TP\n" names(substr(line, 1, at - 1))
            line = substr(line, at)
        } else if (line ~ /^[^ ]/ && is_new) {
            print ".PP"
        }
        is_new = line == "" || line ~ /^[^ ].*:$/ || line ~ /^  /
        sub(/^ +/, "", line)
        if (line != "")
            print roff(line)
    }
    if (!is_filled)
        print ".fi\n.RE"
    close(what " --help")
}

function commands(    line, name, n, i)
{
    while (((program " --help") | getline line) > 0)
        if (match(line, /^  [a-z]+ /))
            name[++n] = substr(line, 3, RLENGTH - 3)
    close(program " --help")
    for (i = 1; i <= n; i++) {
        print ".SS " roff(usage(program " " name[i]))
        rest(program " " name[i])
    }
}

/^@SYNOPSIS@$/ {
    line = roff(usage(program))
    close(program " --help")
    sub(/ /, "\\fR ", line)
    print "\\fB" line
    next
}
/^@OPTIONS@$/ {
    usage(program)
    rest(program)
    next
}
/^@COMMANDS@$/ {
    commands()
    next
}
{
    gsub(/@VERSION@/, version)
    print
}
