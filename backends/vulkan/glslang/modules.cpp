// What is checked of a SPIR-V module, and changed in it, without Python: the same as in compile/spirv.py,
// compile/brain_floats.py and compile/exact_floats.py, which serve where modules come from elsewhere. Tests compare both.
// build.py puts this file after binding.cpp.
#include <initializer_list>
#include <unordered_set>
#include <vector>

typedef std::vector<uint32_t> module_words;

static const size_t header_words = 5;
// The bits of `changes`: the marks of a shader.
static const int brain_floats = 1;
static const int exact_floats = 2;
static const int ordered_floats = 4;

static uint32_t operation_of(uint32_t first) {
    return first & 0xFFFF;
}

static uint32_t instruction(uint32_t operation, uint32_t words) {
    return words << 16 | operation;
}

// Whether instructions fill the words behind a header of SPIR-V 1.0 to 1.6.
static bool is_module(const module_words &words) {
    const size_t end = words.size();
    if (end <= header_words || words[0] != 0x07230203) return false;
    if (words[1] < 0x00010000 || words[1] > 0x00010600 || (words[1] & 0xFF0000FF) != 0) return false;
    if (words[3] == 0 || words[3] > 1u << 24 || words[4] != 0) return false;
    size_t position = header_words;
    while (position < end) {
        const uint32_t length = words[position] >> 16;
        if (length == 0) return false;
        position += length;
    }
    return position == end;
}

// Whether an instruction's operands from its second word on are this text, which is terminated and padded by zeros.
static bool is_text(const uint32_t *first, const char *text) {
    const size_t words = std::strlen(text) / 4 + 1;
    if (first[0] >> 16 != words + 1) return false;
    return std::strncmp(reinterpret_cast<const char *>(first + 1), text, 4 * words) == 0;
}

static void append(module_words &words, std::initializer_list<uint32_t> instruction_words) {
    words.insert(words.end(), instruction_words);
}

// The instruction that names an extension: words of four letters, the last one with a zero behind them.
static void append_extension(module_words &words, const char *name) {
    enum { op_extension = 10 };
    module_words text(std::strlen(name) / 4 + 1);
    std::memcpy(text.data(), name, std::strlen(name));
    words.push_back(instruction(op_extension, static_cast<uint32_t>(text.size() + 1)));
    words.insert(words.end(), text.begin(), text.end());
}

// The module with every 16-bit float replaced by bfloat16 (SPV_KHR_bfloat16).
static module_words with_brain_floats(const module_words &words) {
    enum { extension = 10, capability = 17, type_float = 22, float16 = 9, type_bfloat16 = 5116, matrix_bfloat16 = 5118 };
    module_words found(words.begin(), words.begin() + header_words);
    for (size_t position = header_words; position < words.size(); position += words[position] >> 16) {
        const uint32_t *first = &words[position];
        const uint32_t operation = operation_of(*first);
        if (operation == capability && first[1] == float16) {
            append(found, {instruction(capability, 2), type_bfloat16});
            append(found, {instruction(capability, 2), matrix_bfloat16});
        } else if (operation == type_float && first[2] == 16) {
            append(found, {instruction(type_float, 4), first[1], 16, 0});
        } else {
            found.insert(found.end(), first, first + (*first >> 16));
            if (operation == extension && is_text(first, "SPV_KHR_cooperative_matrix")) {
                append_extension(found, "SPV_KHR_bfloat16");
            }
        }
    }
    return found;
}

static bool is_arithmetic(uint32_t operation) {
    switch (operation) {
        case 127: case 129: case 131: case 133: case 136: case 140: case 141: return true;
        default: return operation >= 142 && operation <= 148;
    }
}

// The module with every instruction of float arithmetic decorated so that it is left as it is.
static module_words with_exact_floats(const module_words &words) {
    enum { decorate = 71, type_void = 19, no_contraction = 42 };
    size_t types = 0;
    std::unordered_set<uint32_t> decorated;
    module_words arithmetic;
    for (size_t position = header_words; position < words.size(); position += words[position] >> 16) {
        const uint32_t operation = operation_of(words[position]);
        if (is_arithmetic(operation)) arithmetic.push_back(words[position + 2]);
        else if (operation == decorate && words[position + 2] == no_contraction) decorated.insert(words[position + 1]);
        else if (operation == type_void && types == 0) types = position;
    }
    module_words added;
    for (const uint32_t result : arithmetic) {
        if (decorated.count(result) == 0) append(added, {instruction(decorate, 3), result, no_contraction});
    }
    module_words found(words.begin(), words.begin() + types);
    found.insert(found.end(), added.begin(), added.end());
    found.insert(found.end(), words.begin() + types, words.end());
    return found;
}
