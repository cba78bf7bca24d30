// chomp: solves Chomp (chomp.py has the rules) by any number of processes of any number of threads, which tell each
// other what they find. One handle for all threads of a process, which closes itself.
//
//     c++ -O2 -pthread chomp.cc -o chomp $(pkg-config --cflags --libs abdada)
//     ttserver &                                            # prints: ready 127.0.0.1:7400
//     for i in 1 2; do ./chomp 127.0.0.1:7400 2 11 10 & done; wait    # two threads each
#include <abdada.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

// An open handle; closed with its owner, also when an exception passes.
class Feed {
public:
    Feed(const std::string &servers, const char *name, unsigned depth)
    {
        char why[256] = "";
        abdada_options options{};
        options.struct_size = sizeof options;
        options.servers = servers.c_str();
        options.namespace_id = abdada_hash(name);
        options.share_depth = depth;
        options.why = why;
        options.why_size = sizeof why;
        abdada *opened = nullptr;
        if (abdada_open(&opened, &options) < 0) {
            throw std::runtime_error(why);
        }
        handle_.reset(opened);
        abdada_wait_connected(opened, 2000); // without a shard it goes on alone
    }

    // Any thread.
    void share(uint64_t key, unsigned depth, int score)
    {
        abdada_share(handle_.get(), key, depth, score, ABDADA_EXACT, 0);
    }

    // Any thread; of two at a time one takes all, the other nothing.
    template <typename Put> void take(Put put)
    {
        abdada_store_op result[256];
        int count = 0;
        do {
            count = abdada_take_shared(handle_.get(), result, 256);
            for (int i = 0; i < count; i++) {
                put(result[i]);
            }
        } while (count == 256);
    }

private:
    struct Close {
        void operator()(abdada *handle) const { abdada_close(handle); }
    };
    std::unique_ptr<abdada, Close> handle_;
};

using Bar = uint64_t; // four bits a column, the first lowest

unsigned squares(Bar bar)
{
    unsigned sum = 0;
    for (; bar != 0; bar >>= 4) {
        sum += bar & 15;
    }
    return sum;
}

class Game {
public:
    Game(Feed &feed, Bar bar) : feed_(feed), bar_(bar) {}

    int solve(unsigned threads)
    {
        std::vector<std::thread> helpers;
        for (unsigned i = 1; i < threads; i++) {
            helpers.emplace_back([this] { search(); });
        }
        int value = search();
        for (auto &helper : helpers) {
            helper.join();
        }
        return value;
    }

    uint64_t nodes() const { return nodes_; }

private:
    static constexpr size_t ENTRIES = 1 << 22;

    // The upper bits are the key's; the lowest two 0 (unknown), 1 (lost) or 2 (won).
    std::unique_ptr<std::atomic<uint64_t>[]> table_{new std::atomic<uint64_t>[ENTRIES]()};
    Feed &feed_;
    const Bar bar_;
    std::atomic<uint64_t> nodes_{0};

    void put(uint64_t key, int score) { table_[key % ENTRIES] = (key & ~UINT64_C(3)) | (score < 0 ? 1 : 2); }

    int search()
    {
        std::mt19937_64 order{std::random_device{}()}; // what one thread does last another does first
        return value(bar_, order);
    }

    // 1: the side to move wins, -1: it loses. All columns gone: the other one has eaten the poison.
    int value(Bar bar, std::mt19937_64 &order)
    {
        const uint64_t key = abdada_mix(bar), known = table_[key % ENTRIES];
        if (bar == 0) {
            return 1;
        }
        if ((known ^ key) >> 2 == 0 && (known & 3) != 0) {
            return (known & 3) == 2 ? 1 : -1;
        }
        if (++nodes_ % 512 == 0) {
            feed_.take([this](const abdada_store_op &result) { put(result.key, result.score); });
        }
        std::vector<Bar> rest;
        for (unsigned column = 0; column < 16 && bar >> 4 * column != 0; column++) {
            for (uint64_t row = 0; row < (bar >> 4 * column & 15); row++) {
                Bar left = bar;
                for (unsigned c = column; c < 16; c++) {
                    const uint64_t height = left >> 4 * c & 15;
                    left -= height > row ? (height - row) << 4 * c : 0;
                }
                rest.push_back(left);
            }
        }
        std::shuffle(rest.begin(), rest.end(), order);
        int best = -1;
        for (size_t i = 0; i < rest.size() && best < 0; i++) {
            best = -value(rest[i], order);
        }
        put(key, best);
        feed_.share(key, std::min(squares(bar), 63u), best);
        return best;
    }
};

} // namespace

int main(int argc, char *argv[])
{
    const unsigned threads = argc == 5 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
    const int columns = argc == 5 ? std::atoi(argv[3]) : 0, rows = argc == 5 ? std::atoi(argv[4]) : 0;
    if (threads < 1 || columns < 1 || columns > 15 || rows < 1 || rows > 15) {
        std::fprintf(stderr, "usage: chomp HOST:PORT,... THREADS COLUMNS ROWS\n");
        return 2;
    }
    Bar bar = 0;
    for (int i = 0; i < columns; i++) {
        bar |= static_cast<Bar>(rows) << 4 * i;
    }
    try {
        Feed feed(argv[1], "chomp", 4);
        Game game(feed, bar);
        const int value = game.solve(threads);
        std::printf("value %d nodes %llu\n", value, static_cast<unsigned long long>(game.nodes()));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "chomp: %s\n", error.what());
        return 1;
    }
    return 0;
}
