// abdada_feed: Stockfish, or an engine that comes of it, together with other processes of the same engine: each tells
// the others what it finds, and puts what they find into its own table. insert.py puts the four lines into the engine's
// search.cpp that call this file, which is included there alone.
//
// Without ABDADA_SERVERS in the environment nothing changes. With it:
//
//     ABDADA_SERVERS    HOST:PORT,... of all shards, or a Redis
//     ABDADA_KEYS       directory of keys, if the shards have keys
//     ABDADA_NAMESPACE  a word; processes with different ones never meet: one for each of two games at a time
//     ABDADA_DEPTH      results of less depth are never sent [8]
//     ABDADA_RATE       results a second from others above which less is sent [100000]
//
// The processes have to search alike: the same sources, network (EvalFile) and tablebases. insert.py writes a hash of
// the sources into ABDADA_ENGINE; add the name of another network to ABDADA_NAMESPACE.
//
// This file is part of abdada and under its licence (MIT). A program built from it and Stockfish is under Stockfish's
// (GPL 3).
#ifndef ABDADA_FEED_H_INCLUDED
#define ABDADA_FEED_H_INCLUDED

#include <abdada.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <tuple>

#include "tt.h"
#include "types.h"

#ifndef ABDADA_ENGINE
#define ABDADA_ENGINE "stockfish"
#endif

namespace Stockfish::abdada_feed {

struct Close {
    void operator()(abdada *handle) const { abdada_close(handle); }
};
inline std::unique_ptr<abdada, Close> opened; // of the main thread
inline abdada *feed; // nullptr: alone. Changes while no thread searches

inline std::string setting(const char *name, const char *otherwise = "")
{
    const char *value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

// The main thread, before a search. Waits for nothing: the clock runs.
inline void begin()
{
    static bool is_begun = false;
    const std::string servers = setting("ABDADA_SERVERS"), keys = setting("ABDADA_KEYS");
    if (feed != nullptr && abdada_connected(feed) <= 0)
        std::cout << "info string no shard answered at " << servers << "; searching alone" << std::endl;
    if (is_begun || servers.empty())
        return;
    is_begun = true;
    char why[256] = "";
    abdada_options options{};
    options.struct_size = sizeof options;
    options.servers = servers.c_str();
    options.keys = keys.empty() ? nullptr : keys.c_str();
    options.namespace_id = abdada_hash((ABDADA_ENGINE " " + setting("ABDADA_NAMESPACE")).c_str());
    options.name = "stockfish";
    options.share_depth = unsigned(std::atoi(setting("ABDADA_DEPTH", "8").c_str()));
    options.share_rate = unsigned(std::atoi(setting("ABDADA_RATE", "100000").c_str()));
    options.why = why;
    options.why_size = sizeof why;
    abdada *handle = nullptr;
    if (abdada_open(&handle, &options) < 0)
        std::cout << "info string ABDADA_SERVERS: " << why << std::endl;
    opened.reset(handle);
    feed = handle;
}

// Bounds of the library are the engine's with 1 and 2 exchanged.
constexpr unsigned exchanged(unsigned bound)
{
    return (bound & 1) << 1 | (bound & 2) >> 1;
}

// Moves are enums or classes.
template <typename M> auto raw(M move, int) -> decltype(unsigned(move.raw()))
{
    return move.raw();
}
template <typename M> unsigned raw(M move, long)
{
    return unsigned(move);
}

// Any thread, where a node is saved. A move that has more than 16 bits stays here.
template <typename M> void result(Key key, Value value, Bound bound, Depth depth, M move)
{
    if (feed != nullptr && depth > 0 && depth < 64)
        abdada_share(feed, key, unsigned(depth), int(value), exchanged(unsigned(bound)),
                     raw(move, 0) <= 0xffff ? raw(move, 0) : 0);
}

// Entries of up to 16.1 are saved by a pointer, with the generation or without it, ...
template <typename E, typename... Rest>
auto save(E *entry, uint8_t generation, int, Rest... rest) -> decltype(entry->save(rest..., generation))
{
    entry->save(rest..., generation);
}
template <typename E, typename... Rest> void save(E *entry, uint8_t, long, Rest... rest)
{
    entry->save(rest...);
}
template <typename T> auto generation(const T &table, int) -> decltype(table.generation())
{
    return table.generation();
}
template <typename T> uint8_t generation(const T &, long)
{
    return 0;
}

template <typename T>
auto put(T &table, const abdada_store_op &r, int) -> decltype(std::get<2>(table.probe(r.key)), void())
{
    // ... of later ones by a writer.
    auto [found, data, writer] = table.probe(r.key);
    if (!found || data.depth < Depth(r.depth))
        writer.write(r.key, Value(r.score), found && data.is_pv, Bound(exchanged(r.bound)), Depth(r.depth),
                     decltype(data.move)(r.move), found ? data.eval : VALUE_NONE, table.generation());
}
template <typename T> void put(T &table, const abdada_store_op &r, long)
{
    bool found = false;
    auto *entry = table.probe(r.key, found);
    if (!found || entry->depth() < Depth(r.depth))
        save(entry, generation(table, 0), 0, Key(r.key), Value(r.score), found && entry->is_pv(),
             Bound(exchanged(r.bound)), Depth(r.depth), decltype(entry->move())(r.move),
             found ? entry->eval() : VALUE_NONE);
}

// The main thread calls it where it looks at the clock. A result that is no deeper than the entry in the table is
// dropped, and so is one whose score this engine cannot have.
template <typename T> void serve(T &table)
{
    abdada_store_op result[256];
    int count = 256;
    while (feed != nullptr && count == 256) {
        count = abdada_take_shared(feed, result, 256);
        for (int i = 0; i < count; i++)
            if (result[i].score >= -int(VALUE_MATE) && result[i].score <= int(VALUE_MATE))
                put(table, result[i], 0);
    }
}

} // namespace Stockfish::abdada_feed

#endif
