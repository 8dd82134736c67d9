// The change of a module that compile/ordered_floats.py makes, without Python. Tests compare both.
// build.py puts this file after modules.cpp.
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

// What a module has: its float types with their widths in bits, in its order; the width of each result that may be
// decorated; the widths for which it asks for signed zeros, infinities and NaN; its first type of 32-bit integers.
struct float_survey {
    std::vector<std::pair<uint32_t, uint32_t>> types;
    std::unordered_map<uint32_t, uint32_t> results;
    std::set<uint32_t> preserved;
    uint32_t integer = 0;
};

enum { special_floats = 4461, op_execution_mode = 16, op_type_integer = 21 };

static float_survey survey_of(const module_words &words) {
    enum { type_float = 22, type_vector = 23 };
    float_survey found;
    std::unordered_map<uint32_t, uint32_t> components;
    for (size_t position = header_words; position < words.size(); position += words[position] >> 16) {
        const uint32_t *first = &words[position];
        const uint32_t operation = operation_of(*first);
        if (operation == type_float && *first >> 16 == 3) {  // with one word more it is another encoding
            found.types.emplace_back(first[1], first[2]);
            components[first[1]] = first[2];
        } else if (operation == type_vector && components.count(first[2]) != 0) {
            components[first[1]] = components[first[2]];
        } else if (operation == op_type_integer && first[2] == 32) {
            if (found.integer == 0) found.integer = first[1];
        } else if (operation == op_execution_mode && first[2] == special_floats) {
            found.preserved.insert(first[3]);
        } else if (is_arithmetic(operation) && components.count(first[1]) != 0) {
            found.results[first[2]] = components[first[1]];
        }
    }
    return found;
}

// The module with its permissions: contraction of all operations but precise ones, and nothing else.
static module_words with_ordered_floats(const module_words &words) {
    enum { op_entry_point = 15, op_capability = 17, op_constant = 43, op_decorate = 71, op_execution_mode_id = 331 };
    enum { no_contraction = 42, fast_math_mode = 40, float_controls_2 = 6029, fast_math_default = 6028 };
    static const uint32_t on_all_numbers = 0, on_normal_numbers = 7, contracted = 0x10000;
    const float_survey found = survey_of(words);
    std::map<uint32_t, uint32_t> masks, constants;  // by width
    for (const auto &type : found.types) {
        masks[type.second] = found.preserved.count(type.second) != 0 ? on_all_numbers : on_normal_numbers;
    }
    uint32_t unused = words[3];
    for (const auto &mask : masks) constants[mask.first] = unused++;
    module_words changed(words.begin(), words.begin() + header_words);
    changed[3] = unused;
    append(changed, {instruction(op_capability, 2), float_controls_2});
    bool is_named = false;  // the extension stands behind all capabilities
    for (size_t position = header_words; position < words.size(); position += words[position] >> 16) {
        const uint32_t *first = &words[position];
        const uint32_t operation = operation_of(*first);
        if (operation != op_capability && !is_named) {
            append_extension(changed, "SPV_KHR_float_controls2");
            is_named = true;
        }
        if (operation == op_execution_mode && first[2] == special_floats) continue;
        if (operation == op_decorate && first[2] == no_contraction) {
            const auto result = found.results.find(first[1]);
            if (result != found.results.end()) {
                append(changed, {instruction(op_decorate, 4), first[1], fast_math_mode, masks[result->second]});
            }
            continue;
        }
        changed.insert(changed.end(), first, first + (*first >> 16));
        if (operation == op_entry_point) {
            for (const auto &type : found.types) {
                const uint32_t constant = constants[type.second];
                append(changed,
                       {instruction(op_execution_mode_id, 5), first[2], fast_math_default, type.first, constant});
            }
        }
        if (operation == op_type_integer && first[1] == found.integer) {
            for (const auto &constant : constants) {
                const uint32_t mask = masks[constant.first] | contracted;
                append(changed, {instruction(op_constant, 4), found.integer, constant.second, mask});
            }
        }
    }
    return changed;
}
