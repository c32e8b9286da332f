/*
  Decoders of metadata and of rows of older layouts (decoder.h) against a corpus, each beginning of its files, and
  mutations of them, as crates/core/tests/hostile does it with the core's. Built with the sanitizers of addresses and of
  undefined behaviour.

  usage: attack CORPUS MUTATIONS SEED         prints 'N passed, N failed'
         attack CORPUS --write                writes what the plugin encodes today
*/
#include "decoder.h"
#include <algorithm>
#include <dirent.h>
#include <new>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace {

using Bytes = std::vector<uint8_t>;

/* Memory that is held, and the most of it so far. */
size_t held, most_held;
/* Whatever the input; and a byte of it may be a column that is known in each layout. */
constexpr size_t kFixedBytes = 4 << 20, kBytesForOne = 64;

struct Random {
    uint64_t state;
    size_t below(size_t limit) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 11) % (limit ? limit : 1);
    }
};

/* One to six changes: a bit, a byte, an edge of a number, a stretch that goes, comes twice, or ends it. */
Bytes mutated(const Bytes& bytes, uint64_t seed) {
    static constexpr uint32_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
    Random random{seed * 0x9e3779b97f4a7c15ULL | 1};
    Bytes out = bytes;
    for (size_t changes = random.below(6) + 1; changes--;) {
        if (out.empty()) out.push_back(static_cast<uint8_t>(random.below(256)));
        const size_t at = random.below(out.size());
        const auto place = out.begin() + static_cast<ptrdiff_t>(at);
        const auto run = static_cast<ptrdiff_t>(random.below(std::min<size_t>(out.size() - at, 64) + 1));
        switch (random.below(7)) {
        case 0:
            out[at] ^= static_cast<uint8_t>(1 << random.below(8));
            break;
        case 1:
            out[at] = static_cast<uint8_t>(random.below(256));
            break;
        case 2: {
            const uint32_t edge = edges[random.below(sizeof edges / sizeof *edges)];
            memcpy(&out[at], &edge, std::min<size_t>(size_t{1} << random.below(3), out.size() - at));
            break;
        }
        case 3:
            out[at] = static_cast<uint8_t>(out[at] + (random.below(2) ? 1 : 255));
            break;
        case 4:
            out.erase(place, place + run);
            break;
        case 5: {
            const Bytes twice(place, place + run);
            out.insert(place, twice.begin(), twice.end());
            break;
        }
        default:
            out.resize(at);
        }
    }
    return out;
}

std::vector<std::pair<std::string, Bytes>> corpus_of(const std::string& directory) {
    std::vector<std::pair<std::string, Bytes>> files;
    DIR* const list = opendir(directory.c_str());
    if (!list) return files;
    while (const dirent* entry = readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        FILE* const file = fopen((directory + "/" + entry->d_name).c_str(), "rb");
        Bytes bytes(1 << 16);
        bytes.resize(file ? fread(bytes.data(), 1, bytes.size(), file) : 0);
        if (file) fclose(file);
        files.emplace_back(entry->d_name, bytes);
    }
    closedir(list);
    return files;
}

/* What is being decoded, for who has to know where it went wrong. */
Bytes input;
std::string called;

/* A decoder's fault ends the process: the sanitizers abort, and so does it where something does not hold. */
extern "C" void tell(int) {
    FILE* const file = fopen("/tmp/teak-hostile-metadata", "wb");
    if (file) {
        fwrite(input.data(), 1, input.size(), file);
        fclose(file);
    }
    fprintf(stderr, "FAILED %s; the bytes are in /tmp/teak-hostile-metadata\n", called.c_str());
    _exit(1);
}

void decode(const Bytes& bytes, const std::string& what) {
    input = bytes;
    called = what;
    const size_t before = held;
    most_held = held;
    LLVMFuzzerTestOneInput(input.data(), input.size());
    if (most_held - before <= kFixedBytes + kBytesForOne * bytes.size()) return;
    fprintf(stderr, "%zu bytes made it hold %zu\n", bytes.size(), most_held - before);
    tell(0);
}

int write_samples(const std::string& corpus) {
    for (const auto& [name, bytes] : samples()) {
        FILE* const file = fopen((corpus + "/" + name).c_str(), "wb");
        if (!file || fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || fclose(file)) return 1;
    }
    return 0;
}

} // namespace

/* Sizes are kept before what is given out. */
constexpr size_t kHead = 16;

void* operator new(size_t size) {
    char* const memory = static_cast<char*>(malloc(size + kHead));
    if (!memory) abort();
    memcpy(memory, &size, sizeof size);
    held += size;
    if (held > most_held) most_held = held;
    return memory + kHead;
}

void operator delete(void* memory) noexcept {
    if (!memory) return;
    char* const own = static_cast<char*>(memory) - kHead;
    size_t size;
    memcpy(&size, own, sizeof size);
    held -= size;
    free(own);
}

void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

int main(int count, char** arguments) {
    if (count == 3 && !strcmp(arguments[2], "--write")) return write_samples(arguments[1]);
    if (count != 4) return 2;
    signal(SIGABRT, tell);
    const auto files = corpus_of(arguments[1]);
    const uint64_t mutations = strtoull(arguments[2], nullptr, 10), first = strtoull(arguments[3], nullptr, 10);
    size_t passed = 0, failed = 0;
    for (const auto& [name, bytes] : samples()) {
        bool kept = false;
        for (const auto& file : files)
            kept |= file.second == bytes;
        if (!kept)
            printf("FAILED %s is written otherwise now: keep the file under another name, then --write\n",
                   name.c_str());
        (kept ? passed : failed)++;
    }
    for (const auto& [name, bytes] : files) {
        decode(bytes, name);
        for (size_t cut = 0; cut < bytes.size(); cut++)
            decode(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(cut)),
                   name + " cut to " + std::to_string(cut));
        for (uint64_t seed = first; seed < first + mutations; seed++)
            decode(mutated(bytes, seed), name + " mutation " + std::to_string(seed));
        passed++;
    }
    printf("%zu passed, %zu failed\n", passed, failed);
    return failed ? 1 : 0;
}
